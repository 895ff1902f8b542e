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
    Cheaper{.exact = "tanhf({0})", .fast = "cutegen::fast_tanh({0})"},
    Cheaper{.exact = "cutegen::mish({0})", .fast = "cutegen::fast_mish({0})"},
    Cheaper{.exact = "cutegen::tanh_softplus({0})", .fast = "cutegen::fast_tanh_softplus({0})"},
    Cheaper{.exact = "cutegen::gelu({0})", .fast = "cutegen::fast_gelu({0})"},
    Cheaper{.exact = "cutegen::gelu_tanh({0})", .fast = "cutegen::fast_gelu_tanh({0})"},
};

bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

bool is_float8(DType dtype) {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
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
  if (shifted.code != kDifference || shifted.inputs.size() != 2) return false;
  const Inst& highest = input(fused, shifted, 1);
  return highest.kind == InstKind::reduction && highest.reduce == ReduceKind::max &&
         highest.inputs[0] == shifted.inputs[0];
}

// Whether the instruction is x - max(x), or x - shift with the finite shift of a maximum, and the
// kernel computes x.
bool subtracts_maximum(const Fused& fused, const Inst& inst) {
  if (inst.kind != InstKind::pointwise || inst.code != kDifference || inst.inputs.size() != 2)
    return false;
  if (input(fused, inst, 0).kind != InstKind::pointwise) return false;
  const Inst* most = &input(fused, inst, 1);
  if (most->code == kFiniteShift) most = &input(fused, *most, 0);
  return most->kind == InstKind::reduction && most->reduce == ReduceKind::max;
}

// Whether values are rounded to coarse steps (integers, 8-bit floats), so that the last bit of a
// quotient may change a result by a whole step.
bool rounds_coarsely(const Fused& fused) {
  return std::any_of(fused.insts.begin(), fused.insts.end(), [](const Inst& inst) {
    return inst.code.starts_with("rintf(") || inst.code.starts_with("floorf(") ||
           inst.code.starts_with("ceilf(") || inst.code.starts_with("truncf(") ||
           inst.code.find("round_to<float_e") != std::string::npos;
  });
}

int add_row_value(Fused& fused, const char* name, const char* code, std::vector<int> inputs) {
  int depth = 0;
  for (int input : inputs) depth = std::max(depth, fused.insts[size_t(input)].depth);
  fused.insts.push_back({.kind = InstKind::pointwise,
                         .level = Level::row,
                         .depth = depth,
                         .name = name,
                         .code = code,
                         .inputs = std::move(inputs)});
  return int(fused.insts.size()) - 1;
}

// A row's divisor is inverted once, not for each element.
void share_reciprocals(Fused& fused) {
  const bool rounded = rounds_coarsely(fused);
  std::map<int, std::vector<int>> inverse;
  for (size_t i = 0; i < fused.insts.size(); ++i) {
    if (fused.insts[i].code != "{0} / {1}" || fused.insts[i].level != Level::element) continue;
    const int by = fused.insts[i].inputs[1];
    const Inst& divisor = fused.insts[size_t(by)];
    if (divisor.level != Level::row || divisor.kind == InstKind::constant || divisor.integer ||
        divisor.boolean)
      continue;
    if (!inverse.count(by) && rounded) {
      const int scale = add_row_value(fused, "scale", "cutegen::divisor_scale({0})", {by});
      inverse[by] = {scale, add_row_value(fused, "inverse", "cutegen::divisor_inverse({0}, {1})",
                                          {by, scale})};
    } else if (!inverse.count(by)) {
      inverse[by] = {add_row_value(fused, "inverse", "cutegen::row_reciprocal({0})", {by})};
    }
    Inst& quotient = fused.insts[i];
    quotient.code = rounded ? "cutegen::rounded_quotient({0}, {1}, {2}, {3})"
                            : "cutegen::quotient({0}, {1}, {2})";
    for (int factor : inverse[by]) quotient.inputs.push_back(factor);
  }
}

}  // namespace

Accuracy needed_accuracy(const Task& task, const Fused& fused) {
  const auto all = [&](bool (*of)(DType)) {
    return std::all_of(fused.outputs.begin(), fused.outputs.end(),
                       [&](const FusedOutput& output) { return of(output.operand.dtype); });
  };
  const bool halves = all(is_half), eighths = all(is_float8);
  const bool rounds = task.math_mode == MathMode::bf16 || task.math_mode == MathMode::fp16;
  // A convolution in tf32 rounds far more coarsely than the fast functions.
  const bool tf32 =
      fused.window && fused.window->wgmma == 1 && fused.window->input.dtype == DType::f32;
  return {.plain_sums = (halves || eighths) && make_nest(fused).length() <= kShortRow,
          .fast_functions = (halves && rounds) || eighths || tf32};
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
  // The compiler merges a multiplication and a subtraction, and then rounds x = a * b only in the
  // maximum. At the maximum, exp(x - max(x)) would not be 1 if x is large.
  for (Inst& inst : fused.insts)
    if (!accuracy.fast_functions && subtracts_maximum(fused, inst)) inst.code = kRoundedDifference;
  return fused;
}

bool is_exponential(const Inst& inst) {
  return inst.kind == InstKind::pointwise && (inst.code == kExp || inst.code == kFastExp);
}

}  // namespace cutegen::recipes
