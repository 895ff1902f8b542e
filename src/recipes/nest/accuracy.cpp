// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/accuracy.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "recipes/nest/nest.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kShortRow = 65536;  // elements that plain float32 additions sum accurately
constexpr std::string_view kExp = "expf({0})", kFastExp = "cutegen::fast_exp({0})";

struct Cheaper {
  std::string_view exact, fast;
};
constexpr std::array kCheaper{
    Cheaper{.exact = kExp, .fast = kFastExp},
    Cheaper{.exact = "cutegen::sigmoid({0})", .fast = "cutegen::fast_sigmoid({0})"},
    Cheaper{.exact = "cutegen::silu({0})", .fast = "cutegen::fast_silu({0})"},
    Cheaper{.exact = "cutegen::gelu_tanh({0})", .fast = "cutegen::fast_gelu_tanh({0})"},
};

bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

const Inst& input(const Fused& fused, const Inst& inst, size_t i) {
  return fused.insts[size_t(inst.inputs[i])];
}

// Whether the instruction is sum(exp(x - max(x))). Such a sum is at least 1, so its reciprocal is
// neither infinite nor subnormal.
bool is_softmax_total(const Fused& fused, const Inst& sum) {
  if (sum.kind != InstKind::reduction || sum.reduce != ReduceKind::sum) return false;
  const Inst& weight = input(fused, sum, 0);
  if (!is_exponential(weight)) return false;
  const Inst& shifted = input(fused, weight, 0);
  if (shifted.code != "{0} - {1}" || shifted.inputs.size() != 2) return false;
  const Inst& highest = input(fused, shifted, 1);
  return highest.kind == InstKind::reduction && highest.reduce == ReduceKind::max &&
         highest.inputs[0] == shifted.inputs[0];
}

// Whether values are rounded to coarse steps, where the last bit of a quotient decides.
bool rounds_coarsely(const Fused& fused) {
  return std::any_of(fused.insts.begin(), fused.insts.end(), [](const Inst& inst) {
    return inst.code.starts_with("rintf(") || inst.code.starts_with("floorf(") ||
           inst.code.starts_with("ceilf(") || inst.code.starts_with("truncf(") ||
           inst.code.find("round_to<float_e") != std::string::npos;
  });
}

// A row's divisor is inverted once, not for each element.
void share_reciprocals(Fused& fused) {
  if (rounds_coarsely(fused)) return;
  std::map<int, int> inverse;
  for (size_t i = 0; i < fused.insts.size(); ++i) {
    if (fused.insts[i].code != "{0} / {1}" || fused.insts[i].level != Level::element) continue;
    const int by = fused.insts[i].inputs[1];
    const Inst& divisor = fused.insts[size_t(by)];
    if (divisor.level != Level::row || divisor.kind == InstKind::constant || divisor.integer ||
        divisor.boolean)
      continue;
    if (!inverse.count(by)) {
      inverse[by] = int(fused.insts.size());
      fused.insts.push_back({.kind = InstKind::pointwise,
                             .level = Level::row,
                             .depth = divisor.depth,
                             .name = "inverse",
                             .code = "cutegen::row_reciprocal({0})",
                             .inputs = {by}});
    }
    fused.insts[i].code = "cutegen::quotient({0}, {1}, {2})";
    fused.insts[i].inputs.push_back(inverse[by]);
  }
}

}  // namespace

Accuracy needed_accuracy(const Task& task, const Fused& fused) {
  const bool halves =
      std::all_of(fused.outputs.begin(), fused.outputs.end(),
                  [](const FusedOutput& output) { return is_half(output.operand.dtype); });
  const bool rounds = task.math_mode == MathMode::bf16 || task.math_mode == MathMode::fp16;
  return {.plain_sums = halves && make_nest(fused).length() <= kShortRow,
          .fast_functions = halves && rounds};
}

Fused relaxed(const Accuracy& accuracy, Fused fused) {
  for (Inst& inst : fused.insts) {
    if (!accuracy.fast_functions) break;
    for (const Cheaper& cheaper : kCheaper)
      if (inst.code == cheaper.exact) inst.code = cheaper.fast;
    if (inst.code == "{0} / {1}" && is_softmax_total(fused, input(fused, inst, 1)))
      inst.code = "{0} * cutegen::fast_reciprocal({1})";
  }
  if (fused.reduces()) share_reciprocals(fused);
  return fused;
}

bool is_exponential(const Inst& inst) {
  return inst.kind == InstKind::pointwise && (inst.code == kExp || inst.code == kFastExp);
}

}  // namespace cutegen::recipes
