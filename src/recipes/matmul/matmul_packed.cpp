// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul_packed.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cutegen::recipes {
namespace {

// Whether the operand is a vector along n that a reshape of the result has split into several axes,
// such as the bias of a layer for queries, keys and values. Its element for column n is then n.
bool lies_along_n(const Contraction& c, const Operand& operand) {
  std::vector<int> axes, own;
  for (const Loop& loop : c.loops_n) axes.insert(axes.end(), loop.axes.begin(), loop.axes.end());
  for (size_t i = 0; i < operand.axes.size(); ++i)
    if (operand.shape[i] != 1) own.push_back(operand.axes[i]);
  return operand.reshaped && operand.original.size() == 1 && !operand.sliced() && own == axes;
}

}  // namespace

bool packs_pairs(const MatmulFinish& finish) {
  const Contraction& c = finish.product();
  const auto& outputs = finish.outputs();
  const auto& inputs = finish.inputs();
  const auto moves = [&](const FactorAccess& a, const Loop& loop) {
    return stride(c.finish, *a.operand, loop).move;
  };
  if (c.groups() != 1 || !c.masks.empty() || outputs.size() != 1 || c.loops_n.empty()) return false;
  // The coordinates of operands for each pair of columns would need too many registers.
  const auto along_n = [&](const FactorAccess& a) { return lies_along_n(c, *a.operand); };
  if (!inputs.empty() &&
      (c.loops_batch.size() > 1 || (c.loops_n.size() > 1 && !std::ranges::all_of(inputs, along_n))))
    return false;
  const DType dtype = outputs[0].operand->dtype;
  if ((dtype != DType::f16 && dtype != DType::bf16) ||
      moves(outputs[0], c.loops_n.back()) != Move::next)
    return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const FactorAccess& a) {
    return !a.operand->counts &&
           std::all_of(c.loops_m.begin(), c.loops_m.end(),
                       [&](const Loop& loop) { return moves(a, loop) == Move::none; });
  });
}

std::string packed_text(MatmulFinish& finish, Layouts& layouts, const std::string& coordinates) {
  const Contraction& c = finish.product();
  const auto& inputs = finish.inputs();
  std::string tensors, loads;
  const bool along_n = c.loops_n.size() > 1;  // all inputs
  for (FactorAccess a : inputs) {
    a.tensor = finish.code().word("pairs_of_" + a.name);
    tensors += along_n ? fmt::format(
                             "Tensor {} = make_tensor(make_gmem_ptr({}),\n"
                             "    make_layout(make_shape(Int<2>{{}}, n_size),\n"
                             "                make_stride(Int<1>{{}}, Int<1>{{}})));\n",
                             a.tensor, a.name)
                       : layouts.tensor(a, "2");
    loads +=
        fmt::format("float {0}[2];\ncutegen::load({1}, {0});\n", a.registers,
                    along_n ? a.tensor + "(_, n)" : place_text(c, a.tensor, Places::coordinates));
  }
  loads += finish.shared();
  // Beyond the last column, the kernel repeats the work for the last pair of columns. A branch
  // would keep the compiler from overlapping the work for several pairs.
  if (!inputs.empty()) loads = "n = min(n, n_size - 2);\n" + loads;
  const FactorAccess& out = finish.outputs()[0];
  return fmt::format(
      "{}"
      "gemm.template each_packed<{}>(\n"
      "    tile,\n"
      "    [&](float (&product)[2], int m, int n) {{\n"
      "{}"
      "{}"
      "      CUTE_UNROLL\n"
      "      for (int v = 0; v < 2; ++v) {}({}, product[v]);\n"
      "    }},\n"
      "    [&](cutegen::Pack<{}, 8> const& pack, int m, int n) {{\n"
      "{}"
      "      if (m < m_size && n < n_size) cutegen::write_pack(pack, &{});\n"
      "    }});",
      tensors, type_of(*out.operand), inputs.empty() || along_n ? "" : inner(coordinates, 6),
      inner(loads, 6), finish.function(), join(finish.values(), ", "), type_of(*out.operand),
      inner(coordinates, 6),
      replace_all(place_text(c, out.tensor, Places::coordinates), "(_, ", "(0, "));
}

}  // namespace cutegen::recipes
