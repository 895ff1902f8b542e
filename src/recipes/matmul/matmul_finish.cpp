// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul_finish.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/matmul/matmul_packed.h"

namespace cutegen::recipes {
namespace {

std::string innermost(const std::string& stride) {
  const std::string maker = "make_stride(";
  if (stride.rfind(maker, 0) != 0) return stride;
  return stride.substr(maker.size(), stride.find(", ") - maker.size());
}

}  // namespace

std::string inner(const std::string& text, int columns) {
  return text.empty() ? "" : indent(text, columns) + "\n";
}

std::string Layouts::stride_text(const Stride& s, const std::string& wanted) {
  if (s.move == Move::none) return "Int<0>{}";
  if (s.move == Move::next) return "Int<1>{}";
  numbers_.emplace_back(code_.word(prefix_ + wanted), s.expression);
  return numbers_.back().first;
}

std::string Layouts::batch_offset(const Factor& factor, const std::string& prefix) {
  std::vector<std::string> sizes, strides;
  for (size_t i = c_.batch_axes.size(); i-- > 0;) {
    std::string stride = stride_text(factor.batch[i], fmt::format("{}_batch{}", prefix, i));
    bool moves = factor.batch[i].move != Move::none;
    if (c_.batch_axes.size() == 1)
      return moves ? fmt::format(" + batch * int64_t({})", stride) : "";
    sizes.push_back(size(fmt::format("batch_size{}", i), c_.extent(c_.batch_axes[i])));
    strides.push_back(stride);
  }
  if (sizes.empty()) return "";
  return fmt::format(" + make_layout(make_shape({}), make_stride({}))(batch)", join(sizes, ", "),
                     join(strides, ", "));
}

std::string Layouts::tensors(const std::vector<FactorAccess>& inputs,
                             const std::vector<FactorAccess>& outputs) {
  std::string text;
  for (const auto* list : {&inputs, &outputs})
    for (const FactorAccess& a : *list) text += tensor(a);
  return text;
}

std::string Layouts::tensor(const FactorAccess& a, const std::string& vector) {
  auto m = mode(a, c_.loops_m, "m", "m_size"), n = mode(a, c_.loops_n, "n", "n_size"),
       batch = mode(a, c_.loops_batch, "b", "batches");
  std::string step = c_.loops_n.empty() ? "Int<0>{}" : innermost(n.second), from = a.name;
  if (a.operand->sliced()) {
    const std::string start = start_text(c_.finish, *a.operand);
    if (start != "0")
      from += " + " + stride_text({.move = Move::stride, .expression = start}, a.name + "_start");
  }
  const std::string source = a.operand->counts ? "cutegen::positions(0"
                                               : fmt::format("make_tensor(make_gmem_ptr({})", from);
  return fmt::format(
      "Tensor {} = {},\n"
      "    make_layout(make_shape(Int<{}>{{}}, {}, {}, {}),\n"
      "                make_stride({}, {}, {}, {})));\n",
      a.tensor, source, vector, m.first, n.first, batch.first, step, m.second, n.second,
      batch.second);
}

std::string Layouts::size(const std::string& name, const std::string& extent) {
  const std::string own = prefix_ + name;
  auto same = [&](const auto& number) { return number.first == own; };
  if (std::none_of(numbers_.begin(), numbers_.end(), same)) numbers_.emplace_back(own, extent);
  return fmt::format("int({})", own);
}

std::vector<std::string> Layouts::sizes(const std::vector<Loop>& loops, const std::string& letter) {
  std::vector<std::string> list;
  for (size_t i = loops.size(); i-- > 0;)
    list.push_back(size(fmt::format("{}_size{}", letter, i), loops[i].extent));
  return list;
}

std::pair<std::string, std::string> Layouts::mode(const FactorAccess& a,
                                                  const std::vector<Loop>& loops,
                                                  const std::string& letter,
                                                  const std::string& whole) {
  std::vector<std::string> strides;
  for (size_t i = loops.size(); i-- > 0;)
    strides.push_back(stride_text(stride(c_.finish, *a.operand, loops[i]),
                                  fmt::format("{}_{}{}", a.name, letter, i)));
  if (strides.empty()) return {whole, "Int<0>{}"};
  if (strides.size() == 1) return {whole, strides[0]};
  return {tuple_of("make_shape", sizes(loops, letter)), tuple_of("make_stride", strides)};
}

std::string Layouts::coordinates(ResultAxis axis) {
  const bool rows = axis == ResultAxis::m, columns = axis == ResultAxis::n;
  const auto& loops = rows ? c_.loops_m : columns ? c_.loops_n : c_.loops_batch;
  if (loops.size() < 2) return "";
  const std::string name = rows ? "m" : columns ? "n" : "batch";
  return fmt::format("const auto at_{} = cutegen::split_index({}, {});\n", name, name,
                     join(sizes(loops, name.substr(0, 1)), ", "));
}

MatmulFinish::MatmulFinish(const Contraction& c, size_t part)
    : c_(c),
      prefix_(part == 0 ? "" : fmt::format("part{}_", part)),
      function_(part == 0 ? "compute" : fmt::format("compute_part{}", part)),
      code_(c.finish) {
  std::vector<int> results;
  results.reserve(c.finish.outputs.size());
  for (const FusedOutput& output : c.finish.outputs) results.push_back(output.inst);
  for (int inst : code_.needed(results, [](const Inst&) { return true; })) {
    const Inst& i = c.finish.insts[size_t(inst)];
    if (i.kind == InstKind::leaf && !is_product(inst) && !c.masks.count(inst))
      inputs_.push_back(access(c.finish.inputs[size_t(i.operand)], inst));
  }
  for (const FusedOutput& output : c.finish.outputs)
    outputs_.push_back(access(output.operand, output.inst));
  find_shared(results);
}

// Finds the values that do not differ along the loop that vectors follow. The compiler does not
// move functions with branches, such as rsqrt(), out of the loop over the results of a vector.
void MatmulFinish::find_shared(const std::vector<int>& results) {
  if (c_.loops_n.empty()) return;
  std::set<int> same;
  for (const FactorAccess& a : inputs_)
    if (!a.operand->counts && !a.operand->gathered() &&
        stride(c_.finish, *a.operand, c_.loops_n.back()).move == Move::none)
      same.insert(a.inst);
  shared_ = find_shared_values(c_.finish, code_, results, same);
}

std::vector<const FactorAccess*> MatmulFinish::read_inputs(bool once) const {
  std::vector<int> results;
  for (const FactorAccess& a : outputs_) results.push_back(a.inst);
  const std::set<int> read = inputs_of_results(c_.finish, code_, shared_, results, once);
  std::vector<const FactorAccess*> list;
  for (const FactorAccess& a : inputs_)
    if (read.contains(a.inst)) list.push_back(&a);
  return list;
}

std::string MatmulFinish::shared() const {
  std::vector<std::string> values;
  for (const FactorAccess* a : read_inputs(true)) values.push_back(a->registers + "[0]");
  return shared_call(shared_name(), c_.finish, code_, shared_, values);
}

FactorAccess MatmulFinish::access(const Operand& operand, int inst) {
  const std::string& name = c_.finish.names.at(operand.tensor);
  return {.operand = &operand,
          .inst = inst,
          .name = name,
          .tensor = code_.word("g_" + name),
          .registers = code_.word("r_" + name)};
}

bool MatmulFinish::is_product(int inst) const {
  return inst == c_.product ||
         std::any_of(c_.partners.begin(), c_.partners.end(),
                     [&](const Contraction::Partner& partner) { return partner.product == inst; });
}

std::string MatmulFinish::compute() {
  const auto declare = [&](const FactorAccess& a) {
    return (a.operand->counts ? "int64_t " : "float ") + code_.id(a.inst);
  };
  std::vector<std::string> params{"float " + code_.id(c_.product)}, shared;
  for (const Contraction::Partner& partner : c_.partners)
    params.push_back("float " + code_.id(partner.product));
  for (const auto& [inst, mask] : c_.masks) params.push_back("bool " + code_.id(inst));
  for (const FactorAccess* a : read_inputs(false)) params.push_back(declare(*a));
  for (const FactorAccess* a : read_inputs(true)) shared.push_back(declare(*a));
  for (int inst : shared_.read)
    params.push_back(kept_type(c_.finish.insts[size_t(inst)]) + (" " + code_.id(inst)));
  for (const auto& [word, expression] : c_.finish.sizes) params.push_back("int64_t " + word);
  std::vector<int> results;
  std::string body, ends;
  for (const FactorAccess& a : outputs_) {
    results.push_back(a.inst);
    std::string result = code_.word("result_" + a.name);
    params.push_back("float& " + result);
    ends += fmt::format("  {} = {};\n", result, code_.use(a.inst));
  }
  for (int inst :
       code_.needed(results, [](const Inst& i) { return i.kind == InstKind::pointwise; }))
    if (!shared_.once.contains(inst)) body += "  " + code_.statement(inst);
  return shared_function(shared_name(), c_.finish, code_, shared_, shared) +
         fmt::format(
             "// Computes what follows the product for one element, in float32.\n"
             "__device__ __forceinline__ void {}({}) {{\n{}{}}}",
             function_, join(params, ", "), body, ends);
}

std::vector<std::string> MatmulFinish::values() const {
  std::vector<std::string> values;
  if (c_.partners.empty()) values.emplace_back("product[v]");
  for (int64_t g = 0; !c_.partners.empty() && g < c_.groups(); ++g)
    values.push_back(fmt::format("product[{}][v]", g));
  for (const auto& [inst, mask] : c_.masks)
    values.push_back(fmt::format("n + v - m {} {}", mask.upper ? ">=" : "<=", mask.diagonal));
  for (const FactorAccess* a : read_inputs(false)) values.push_back(a->registers + "[v]");
  for (int inst : shared_.read) values.push_back(code_.id(inst));
  for (const auto& [word, expression] : c_.finish.sizes) values.push_back(word);
  return values;
}

std::string place_text(const Contraction& c, const std::string& tensor, Places places) {
  const auto index = [&](const std::string& axis, const std::vector<Loop>& loops) {
    return places == Places::coordinates && loops.size() > 1 ? "at_" + axis : axis;
  };
  return fmt::format("{}(_, {}, {}, {})", tensor, index("m", c.loops_m), index("n", c.loops_n),
                     index("batch", c.loops_batch));
}

std::string MatmulFinish::work(Places places, bool held) const {
  std::string text, stores;
  std::vector<std::string> values = this->values();
  for (const FactorAccess& a : inputs_) {
    const bool ahead = held && !a.operand->counts;
    text += fmt::format("{4} {0}[kVector];\ncutegen::{1}({2}, {3}{0});\n", a.registers,
                        ahead ? "held" : "load", place_text(c_, a.tensor, places),
                        ahead ? "own." + a.registers + ", " : "",
                        a.operand->counts ? "int64_t" : "float");
  }
  for (const FactorAccess& a : outputs_) {
    text += fmt::format("float {}[kVector];\n", a.registers);
    values.push_back(a.registers + "[v]");
    stores +=
        fmt::format("cutegen::store({}, {});\n", a.registers, place_text(c_, a.tensor, places));
  }
  return text + shared() + "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v)\n  " + function_ + "(" +
         join(values, ", ") + ");\n" + stores;
}

std::string MatmulFinish::results(Numbers& numbers, bool ahead, bool packs,
                                  const std::string& each) {
  const bool reads = std::any_of(inputs_.begin(), inputs_.end(),
                                 [](const FactorAccess& a) { return !a.operand->counts; });
  Layouts layouts = this->layouts(numbers);
  const std::string tensors = layouts.tensors(inputs_, outputs_);
  const std::string of_batch = layouts.coordinates(ResultAxis::batch);
  const std::string of_place =
      layouts.coordinates(ResultAxis::m) + layouts.coordinates(ResultAxis::n);
  const std::string usual = ahead && reads
                                ? each_ahead(of_place)
                                : each_text(each, c_.groups(), of_place, work(Places::coordinates));
  if (!packs || !packs_pairs(*this)) return tensors + of_batch + usual;
  return tensors + of_batch + "if constexpr (kVector == 8) {\n" +
         indent(packed_text(*this, layouts, of_place), 2) + "\n} else {\n" + indent(usual, 2) +
         "\n}";
}

std::string MatmulFinish::each_ahead(const std::string& coordinates) const {
  std::string members, loads;
  for (const FactorAccess& a : inputs_) {
    if (a.operand->counts) continue;
    members += fmt::format("  cutegen::Held<{}, kVector> {};\n", type_of(*a.operand), a.registers);
    loads += fmt::format("    cutegen::hold({}, own.{});\n",
                         place_text(c_, a.tensor, Places::coordinates), a.registers);
  }
  return fmt::format(
      "struct Operands {{\n{}}};\n"
      "gemm.each<kVector>(\n"
      "    tile,\n"
      "    [&](int m, int n) {{\n"
      "      Operands own;\n"
      "{}"
      "      if (m < m_size && n < n_size) {{\n{}\n      }}\n"
      "      return own;\n"
      "    }},\n"
      "    [&](float const (&product){}[kVector], Operands const& own, int m, int n) {{\n"
      "{}"
      "      if (m >= m_size || n >= n_size) return;\n{}\n    }});",
      members, inner(coordinates, 6), indent(loads, 4),
      c_.groups() == 1 ? "" : fmt::format("[{}]", c_.groups()), inner(coordinates, 6),
      indent(work(Places::coordinates, true), 6));
}

std::string each_text(const std::string& each, int64_t groups, const std::string& coordinates,
                      const std::string& body) {
  return fmt::format(
      "gemm.{}(tile, [&](float const (&product){}[kVector], int m, int n) {{\n"
      "{}"
      "  if (m >= m_size || n >= n_size) return;\n{}\n}});",
      each, groups == 1 ? "" : fmt::format("[{}]", groups), inner(coordinates, 2), indent(body, 2));
}

}  // namespace cutegen::recipes
