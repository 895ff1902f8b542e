// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/formulas.h"

namespace cutegen::recipes {
namespace {

using Formulas = std::map<std::string, const char*>;

// Functions of one number.
const Formulas& functions() {
  static const Formulas table{
      {"exp", "expf({0})"},
      {"exp2", "exp2f({0})"},
      {"expm1", "expm1f({0})"},
      {"log", "logf({0})"},
      {"log2", "log2f({0})"},
      {"log10", "log10f({0})"},
      {"log1p", "log1pf({0})"},
      {"sqrt", "sqrtf({0})"},
      {"rsqrt", "cutegen::rsqrt({0})"},
      {"reciprocal", "cutegen::reciprocal({0})"},
      {"square", "cutegen::square({0})"},
      {"abs", "fabsf({0})"},
      {"neg", "-{0}"},
      {"sign", "cutegen::sign({0})"},
      {"sgn", "cutegen::sign({0})"},
      {"erf", "erff({0})"},
      {"erfc", "erfcf({0})"},
      {"sin", "sinf({0})"},
      {"cos", "cosf({0})"},
      {"tan", "tanf({0})"},
      {"asin", "asinf({0})"},
      {"acos", "acosf({0})"},
      {"atan", "atanf({0})"},
      {"sinh", "sinhf({0})"},
      {"cosh", "coshf({0})"},
      {"asinh", "asinhf({0})"},
      {"acosh", "acoshf({0})"},
      {"atanh", "atanhf({0})"},
      {"floor", "floorf({0})"},
      {"ceil", "ceilf({0})"},
      {"round", "rintf({0})"},
      {"trunc", "truncf({0})"},
      {"frac", "cutegen::fraction({0})"},
      {"erfinv", "erfinvf({0})"},
      {"lgamma", "lgammaf({0})"},
      {"sinc", "cutegen::sinc({0})"},
      {"deg2rad", "{0} * 0.017453292f"},
      {"rad2deg", "{0} * 57.29578f"},
      {"positive", "{0}"},
      {"logit", "cutegen::logit({0}, {1/eps:-1})"},
      {"round_to_tf32", "cutegen::round_to_tf32({0})"},
  };
  return table;
}

// Activations of neural networks.
const Formulas& activations() {
  static const Formulas table{
      {"relu", "cutegen::relu({0})"},
      {"relu6", "cutegen::clamp({0}, 0.0f, 6.0f)"},
      {"sigmoid", "cutegen::sigmoid({0})"},
      {"tanh", "tanhf({0})"},
      {"silu", "cutegen::silu({0})"},
      {"mish", "cutegen::mish({0})"},
      {"tanh_softplus", "cutegen::tanh_softplus({0})"},
      {"log_sigmoid_forward", "cutegen::log_sigmoid({0})"},
      {"hardsigmoid", "cutegen::hard_sigmoid({0})"},
      {"hardswish", "cutegen::hard_swish({0})"},
      {"hardtanh", "cutegen::clamp({0}, {1/min_val:-1}, {2/max_val:1})"},
      {"leaky_relu", "cutegen::leaky_relu({0}, {1/negative_slope:0.01})"},
      {"_prelu_kernel", "cutegen::leaky_relu({0}, {1})"},
      {"threshold", "cutegen::threshold({0}, {1/threshold}, {2/value})"},
      {"elu", "cutegen::elu({0}, {1/alpha:1}, {2/scale:1}, {3/input_scale:1})"},
      {"celu", "cutegen::celu({0}, {1/alpha:1})"},
      {"selu", "cutegen::elu({0}, 1.6732632f, 1.050701f, 1.0f)"},
      {"softplus", "cutegen::softplus({0}, {1/beta:1}, {2/threshold:20})"},
      {"softshrink", "cutegen::soft_shrink({0}, {1/lambd:0.5})"},
      {"hardshrink", "cutegen::hard_shrink({0}, {1/lambd:0.5})"},
  };
  return table;
}

// Functions of several numbers.
const Formulas& combinations() {
  static const Formulas table{
      {"maximum", "cutegen::maximum({0}, {1})"},
      {"minimum", "cutegen::minimum({0}, {1})"},
      {"fmax", "fmaxf({0}, {1})"},
      {"fmin", "fminf({0}, {1})"},
      {"mul", "{0} * {1/other}"},
      {"fmod", "fmodf({0}, {1/other})"},
      {"remainder", "cutegen::remainder({0}, {1/other})"},
      {"atan2", "atan2f({0}, {1})"},
      {"hypot", "hypotf({0}, {1})"},
      {"lerp", "cutegen::lerp({0}, {1}, {2/weight})"},
      {"addcmul", "{0} + {3/value:1} * {1} * {2}"},
      {"addcdiv", "{0} + {3/value:1} * ({1} / {2})"},
      {"where", "({0} ? {1} : {2})"},
      {"masked_fill", "({1} ? {2/value} : {0})"},
      {"clamp_min", "cutegen::clamp_min({0}, {1/min})"},
      {"clamp_max", "cutegen::clamp_max({0}, {1/max})"},
      {"xlogy", "cutegen::xlogy({0/self}, {1/other})"},
      {"copysign", "copysignf({0}, {1/other})"},
      {"heaviside", "cutegen::heaviside({0}, {1})"},
      {"logaddexp", "cutegen::log_add_exp({0}, {1})"},
      {"logaddexp2", "1.442695f * cutegen::log_add_exp(0.6931472f * {0}, 0.6931472f * {1})"},
      {"logits_loss", "cutegen::logits_loss({0}, {1}, 1.0f)"},
      {"logits_loss_weighted", "cutegen::logits_loss({0}, {1}, {2})"},
      {"histogram_bin", "cutegen::histogram_bin({0}, {1}, {2}, {3})"},
      {"grid_aligned", "({0} * 0.5f * ({1} - 1.0f))"},
      {"grid_between", "(({0} * {1} - 1.0f) * 0.5f)"},
      {"grid_inside", "fminf(fmaxf({0}, 0.0f), {1} - 1.0f)"},
      {"grid_is_inside", "({0} >= 0.0f && {0} <= {1} - 1.0f ? 1.0f : 0.0f)"},
  };
  return table;
}

// Losses, element by element (reduction 0).
const Formulas& losses() {
  static const Formulas table{
      {"mse_loss", "cutegen::square({0} - {1})"},
      {"smooth_l1_loss", "cutegen::smooth_l1({0} - {1}, {3/beta:1})"},
      {"huber_loss", "cutegen::huber({0} - {1}, {3/delta:1})"},
      {"soft_margin_loss", "log1pf(expf(-{1} * {0}))"},
      {"binary_cross_entropy", "cutegen::cross_entropy({0}, {1})"},
  };
  return table;
}

// Functions that return a truth value.
const Formulas& tests() {
  static const Formulas table{
      {"eq", "({0} == {1/other})"},
      {"ne", "({0} != {1/other})"},
      {"gt", "({0} > {1/other})"},
      {"ge", "({0} >= {1/other})"},
      {"lt", "({0} < {1/other})"},
      {"le", "({0} <= {1/other})"},
      {"isnan", "cutegen::is_nan({0})"},
      {"isinf", "cutegen::is_inf({0})"},
      {"isfinite", "cutegen::is_finite({0})"},
      {"signbit", "signbit({0})"},
      {"logical_not", "!{0}"},
      {"logical_and", "({0} && {1})"},
      {"logical_or", "({0} || {1})"},
      {"logical_xor", "(!{0} != !{1})"},
  };
  return table;
}

}  // namespace

const char* find_formula(const std::string& base) {
  for (const Formulas* table : {&functions(), &activations(), &combinations(), &losses(), &tests()})
    if (auto it = table->find(base); it != table->end()) return it->second;
  return nullptr;
}

const char* integer_formula(const std::string& base) {
  static const Formulas table{
      {"mul", "{0} * {1/other}"},
      {"neg", "-{0}"},
      {"abs", "({0} < 0 ? -{0} : {0})"},
      {"square", "{0} * {0}"},
      {"remainder", "cutegen::floor_mod({0}, {1/other})"},
      {"floor_divide", "cutegen::floor_div({0}, {1/other})"},
      {"bitwise_and", "({0} & {1/other})"},
      {"bitwise_or", "({0} | {1/other})"},
      {"bitwise_xor", "({0} ^ {1/other})"},
      {"bitwise_not", "~{0}"},
      {"__lshift__", "({0} << {1/other})"},
      {"bitwise_left_shift", "({0} << {1/other})"},
      {"__rshift__", "({0} >> {1/other})"},
      {"bitwise_right_shift", "({0} >> {1/other})"},
      {"maximum", "({0} > {1} ? {0} : {1})"},
      {"minimum", "({0} < {1} ? {0} : {1})"},
      {"clamp_min", "({0} > {1/min} ? {0} : {1/min})"},
      {"clamp_max", "({0} < {1/max} ? {0} : {1/max})"},
      {"where", "({0} ? {1} : {2})"},
      {"masked_fill", "({1} ? {2/value} : {0})"},
  };
  const auto known = table.find(base);
  return known == table.end() ? nullptr : known->second;
}

bool gives_boolean(const std::string& base) {
  return tests().count(base) != 0;
}

}  // namespace cutegen::recipes
