// SPDX-License-Identifier: Apache-2.0
// This header has pointwise functions on floats with PyTorch's semantics. NaN propagates. All
// functions have full float32 precision, except those whose names begin with fast_ or flushed_.
//
// Contract: all functions of this header are device functions without state and do not need CuTe.
// The first argument of a function is the element, and the operator's scalars follow.
//
// Example: float y = cutegen::leaky_relu(x, 0.01f);
#pragma once

namespace cutegen {

#define CUTEGEN_FN __device__ __forceinline__

CUTEGEN_FN float infinity() { return __int_as_float(0x7f800000); }
CUTEGEN_FN float not_a_number() { return __int_as_float(0x7fc00000); }
CUTEGEN_FN bool is_nan(float x) { return x != x; }
CUTEGEN_FN bool is_inf(float x) { return fabsf(x) == infinity(); }
CUTEGEN_FN bool is_finite(float x) { return fabsf(x) < infinity(); }

// Rounds x to tf32: returns the nearest float whose significand has only tf32's 10 bits.
CUTEGEN_FN float round_to_tf32(float x) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return __uint_as_float(rounded);
}

// If one argument is NaN, PyTorch's maximum and minimum return NaN. max.NaN and min.NaN do the
// same, but fmaxf and fminf would return the other argument.
CUTEGEN_FN float maximum(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}
CUTEGEN_FN float minimum(float a, float b) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
  return least;
}
// If the limit is zero, clamp_min() and clamp_max() do not call maximum() or minimum(), which may
// change the sign of a zero.
CUTEGEN_FN float clamp_min(float x, float low) {
  return low != 0.0f ? maximum(x, low) : (x < low ? low : x);
}
CUTEGEN_FN float clamp_max(float x, float high) {
  return high != 0.0f ? minimum(x, high) : (x > high ? high : x);
}
CUTEGEN_FN float clamp(float x, float low, float high) {
  return clamp_max(clamp_min(x, low), high);
}

// The compiler may fuse a multiplication and a subtraction into one instruction, which does not
// round the product. It never fuses minus(), so the product is rounded.
CUTEGEN_FN float minus(float a, float b) { return __fsub_rn(a, b); }
CUTEGEN_FN float square(float x) { return x * x; }
// Computes x^(Quarters / 4) with square roots. Quarters must be 1, 3 or 6.
template <int Quarters>
CUTEGEN_FN float power_of_quarters(float x) {
  const float root = sqrtf(x), power = Quarters == 6   ? x * root
                                       : Quarters == 3 ? root * sqrtf(root)
                                                       : sqrtf(root);
  return x == -INFINITY ? INFINITY : power;
}
// floor_div() rounds the quotient down, as Python does, and floor_mod() returns the remainder.
CUTEGEN_FN int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
CUTEGEN_FN int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }
CUTEGEN_FN float cube(float x) { return x * x * x; }
CUTEGEN_FN float reciprocal(float x) { return 1.0f / x; }
// Improves the GPU's approximation of 1 / sqrt(x) by one step of Newton's method. The error of
// rsqrt() is at most 1 ulp, like the error of 1 / sqrtf(x).
CUTEGEN_FN float rsqrt(float x) {
  if (!(x >= 0x1p-100f && x <= 0x1p100f)) return 1.0f / sqrtf(x);
  const float y = rsqrtf(x);
  return fmaf(0.5f * y, fmaf(-x * y, y, 1.0f), y);
}
CUTEGEN_FN float fraction(float x) { return x - truncf(x); }
CUTEGEN_FN float sign(float x) { return float(x > 0.0f) - float(x < 0.0f); }
// Returns the remainder; its sign is the divisor's sign, as in Python.
CUTEGEN_FN float remainder(float a, float b) {
  float r = fmodf(a, b);
  return (r != 0.0f && (r < 0.0f) != (b < 0.0f)) ? r + b : r;
}

// The flushed_ and fast_ functions are for kernels that round results to 16 bits or operands to
// tf32. Their relative error is at most 2^-16 if the result is a normal number. If the result would
// be subnormal, flushed_exp() and flushed_exp2() return zero. fast_exp() returns the subnormal
// result, because bfloat16 can represent it. To do so, fast_exp() squares exp(x / 2), which is a
// normal number.
CUTEGEN_FN float flushed_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
CUTEGEN_FN float flushed_exp(float x) { return flushed_exp2(x * 1.4426950408889634f); }
CUTEGEN_FN float fast_exp(float x) {
  const float root = flushed_exp2(x * 0.7213475204444817f);
  return root * root;
}
CUTEGEN_FN float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Returns the power of two by which to scale a divisor. It brings very large and very small
// divisors closer to one, and is 1 for other divisors.
CUTEGEN_FN float divisor_scale(float by) {
  const float size = fabsf(by);
  return size < 0x1p-64f ? 0x1p64f : size > 0x1p64f ? 0x1p-64f : 1.0f;
}
// If many elements share a divisor, row_reciprocal() computes the inverse of the scaled divisor
// once, and quotient() needs only two multiplications for each element, without a branch. The error
// of quotient() is at most 1.5 ulp.
CUTEGEN_FN float row_reciprocal(float by) { return 1.0f / (by * divisor_scale(by)); }
CUTEGEN_FN float quotient(float x, float by, float inverse) {
  return x * divisor_scale(by) * inverse;
}
// rounded_quotient() is for results that depend on the last bit: it rounds as a division does. It
// does not divide, because divisor_inverse() has divided once for all elements with this divisor.
// One step of Newton's method makes the quotient exact to 46 bits before the rounding.
CUTEGEN_FN float divisor_inverse(float by, float scale) { return 1.0f / (by * scale); }
CUTEGEN_FN float rounded_quotient(float x, float by, float scale, float inverse) {
  const float scaled = x * scale, rough = scaled * inverse;
  const float better = fmaf(fmaf(-rough, by * scale, scaled), inverse, rough);
  return is_finite(better) ? better : rough;
}
// fast_sigmoid() and fast_silu() compute e^-|x| as the square of e^(-|x| / 2), because the
// approximate exponential would flush subnormal results to zero. For example, silu(-88) is 5e-37.
CUTEGEN_FN float fast_sigmoid(float x) {
  const float root = flushed_exp(-0.5f * fabsf(x)), share = x < 0.0f ? root : 1.0f;
  return share * (share * fast_reciprocal(fmaf(root, root, 1.0f)));
}
CUTEGEN_FN float fast_silu(float x) {
  const float root = flushed_exp(-0.5f * fabsf(x)), share = x < 0.0f ? root : 1.0f;
  return x * share * (share * fast_reciprocal(fmaf(root, root, 1.0f)));
}
// Computes 1 - 2 / (1 + e^2x). Near zero, this difference would lose digits, but x - x^3 / 3 is
// accurate to 6e-6.
CUTEGEN_FN float fast_tanh(float x) {
  const float large = fmaf(-2.0f, fast_reciprocal(1.0f + flushed_exp(2.0f * x)), 1.0f);
  return fabsf(x) < 0.08f ? fmaf(x * x, x * -0.33333334f, x) : large;
}
// Computes tanh(log(1 + e^x)) as tanh_softplus() does. If e^x is subnormal, fast_exp() still returns
// it, not zero.
CUTEGEN_FN float fast_tanh_softplus(float x) {
  const float e = fast_exp(fminf(x, 20.0f)), n = e * (e + 2.0f);
  return n * fast_reciprocal(n + 2.0f);
}
CUTEGEN_FN float fast_mish(float x) { return x * fast_tanh_softplus(x); }
// Uses the identity (1 + tanh(u)) / 2 = sigmoid(2u).
CUTEGEN_FN float fast_gelu_tanh(float x) {
  return x * fast_sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
}

// Computes x * Phi(x), where Phi is the distribution function of the standard normal. For a >= 0
// and t = 1 / (1 + 0.35 a), Phi(-a) is approximately t * 2^(P(t) - a^2 / (2 ln 2)). We fitted the
// polynomial P so that the relative error is at most 7e-6.
CUTEGEN_FN float fast_gelu(float x) {
  const float a = fabsf(x), t = fast_reciprocal(fmaf(0.35f, a, 1.0f));
  float p = fmaf(t, 0.33314651f, -1.05047881f);
  p = fmaf(t, p, 0.73798104f);
  p = fmaf(t, p, 0.34786995f);
  p = fmaf(t, p, 1.47370230f);
  p = fmaf(t, p, -2.84221157f);
  const float tail = t * flushed_exp2(fmaf(a * -0.72134752f, a, p));
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

CUTEGEN_FN float relu(float x) { return x < 0.0f ? 0.0f : x; }
CUTEGEN_FN float leaky_relu(float x, float slope) { return x > 0.0f ? x : x * slope; }
CUTEGEN_FN float threshold(float x, float limit, float value) { return x <= limit ? value : x; }
// Computes 1 / x for x from 1 to 2 with an error of at most 1 ulp. Unlike a division, this function
// has no branch, so the instructions of several elements overlap. It improves the GPU's
// approximation of 1 / x by one step of Newton's method.
CUTEGEN_FN float reciprocal_of_one_to_two(float x) {
  const float y = fast_reciprocal(x);
  return fmaf(fmaf(-x, y, 1.0f), y, y);
}
// Computes x / 6 for x up to 6, without the branch that a division has.
CUTEGEN_FN float sixth(float x) {
  const float y = x * (1.0f / 6.0f);
  return fmaf(fmaf(-6.0f, y, x), 1.0f / 6.0f, y);
}
CUTEGEN_FN float sigmoid(float x) {
  const float power = expf(-fabsf(x));
  return (x < 0.0f ? power : 1.0f) * reciprocal_of_one_to_two(1.0f + power);
}
CUTEGEN_FN float silu(float x) { return x * sigmoid(x); }
CUTEGEN_FN float log_sigmoid(float x) { return fminf(x, 0.0f) - log1pf(expf(-fabsf(x))); }
CUTEGEN_FN float hard_sigmoid(float x) { return sixth(clamp(x + 3.0f, 0.0f, 6.0f)); }
CUTEGEN_FN float hard_swish(float x) { return x * hard_sigmoid(x); }
CUTEGEN_FN float elu(float x, float alpha, float scale, float input_scale) {
  return x > 0.0f ? x * scale : expm1f(x * input_scale) * (alpha * scale);
}
CUTEGEN_FN float celu(float x, float alpha) {
  return x > 0.0f ? x : alpha * expm1f(x / alpha);
}
CUTEGEN_FN float softplus(float x, float beta, float limit) {
  float scaled = x * beta;
  return scaled > limit ? x : log1pf(expf(scaled)) / beta;
}
// Computes tanh(log(1 + e)) with e = exp(x). The result equals n / (n + 2) with n = e (e + 2),
// which needs only one exponential and has no cancellation.
CUTEGEN_FN float tanh_softplus(float x) {
  const float e = expf(fminf(x, 20.0f)), n = e * (e + 2.0f);
  return x > 20.0f ? 1.0f : __fdividef(n, n + 2.0f);
}
CUTEGEN_FN float mish(float x) { return x * tanh_softplus(x); }
CUTEGEN_FN float gelu(float x) { return x * 0.5f * (1.0f + erff(x * 0.70710678118654752f)); }
CUTEGEN_FN float gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}
CUTEGEN_FN float soft_shrink(float x, float lambda) {
  if (is_nan(x)) return x;
  return x > lambda ? x - lambda : (x < -lambda ? x + lambda : 0.0f);
}
CUTEGEN_FN float hard_shrink(float x, float lambda) {
  return (x >= -lambda && x <= lambda) ? 0.0f : x;
}
// Computes start + weight * (end - start). lerp() starts from the closer of the two ends, as
// PyTorch does.
CUTEGEN_FN float lerp(float start, float end, float weight) {
  float d = end - start;
  return fabsf(weight) < 0.5f ? start + weight * d : end - d * (1.0f - weight);
}

// Computes x * log(y). If x is zero, the result is zero unless y is NaN.
CUTEGEN_FN float xlogy(float x, float y) {
  return x == 0.0f && !is_nan(y) ? 0.0f : x * logf(y);
}
// smooth_l1() and huber() are functions of the difference d of prediction and target.
CUTEGEN_FN float smooth_l1(float d, float beta) {
  float size = fabsf(d);
  return size < beta ? 0.5f * size * size / beta : size - 0.5f * beta;
}
CUTEGEN_FN float huber(float d, float delta) {
  float size = fabsf(d);
  return size < delta ? 0.5f * size * size : delta * (size - 0.5f * delta);
}
// Returns the binary cross entropy of probability p and target t. As in PyTorch, logarithms below
// -100 count as -100.
CUTEGEN_FN float cross_entropy(float p, float t) {
  return (t - 1.0f) * clamp_min(log1pf(-p), -100.0f) - t * clamp_min(logf(p), -100.0f);
}
// Returns the binary cross entropy of probability sigmoid(x) and target t; `positive` is
// pos_weight.
CUTEGEN_FN float logits_loss(float x, float t, float positive) {
  const float small = log1pf(expf(-fabsf(x))) + fmaxf(-x, 0.0f);  // log(1 + exp(-x))
  return (1.0f - t) * x + (1.0f + (positive - 1.0f) * t) * small;
}

CUTEGEN_FN float sinc(float x) { return x == 0.0f ? 1.0f : sinpif(x) / (3.14159265358979f * x); }
// If eps is negative, logit() does not clamp x.
CUTEGEN_FN float logit(float x, float eps) {
  const float p = eps < 0.0f ? x : clamp(x, eps, 1.0f - eps);
  return logf(p / (1.0f - p));
}
CUTEGEN_FN float heaviside(float x, float at_zero) {
  return x == 0.0f ? at_zero : x > 0.0f ? 1.0f : 0.0f;
}
CUTEGEN_FN float log_add_exp(float a, float b) {
  if (is_inf(a) && a == b) return a;
  return maximum(a, b) + log1pf(expf(-fabsf(a - b)));
}
CUTEGEN_FN float nan_to_num(float x, float nan, float high, float low) {
  return is_nan(x) ? nan : is_inf(x) ? (x > 0.0f ? high : low) : x;
}
// Returns the index of the bin that contains x, or -1 if x is outside [low, high]. All bins have
// the same width, and the last bin includes the value `high`.
CUTEGEN_FN float histogram_bin(float x, float low, float high, float bins) {
  if (!(x >= low && x <= high)) return -1.0f;
  return fminf(floorf((x - low) / (high - low) * bins), bins - 1.0f);
}

#undef CUTEGEN_FN

}  // namespace cutegen
