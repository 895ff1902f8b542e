// SPDX-License-Identifier: Apache-2.0
// Compares outputs on a GPU exactly as src/tensor/compare.cpp does, and fills memory before a run.
// Runs in the evaluator's own context, which never loads a candidate.
//
// Every operation rounds as on the host: the compiler fuses no product with a sum.

typedef unsigned long long word;

struct Rule {
  double factor, eps, least, largest, overflow;  // |truth| >= overflow does not fit in the dtype
  double close;                                  // tolerance of the looser public rule
  double rtol, atol;                             // the user's bound; both negative: none
  word poison;
  int dtype, overflows_to_nan, nan_is_undefined;
};

struct Tally {
  word wrong, nan, zero, unwritten, not_close, first, last, worst;  // worst: bits of a double
  word finite;              // number of elements in the sums below
  double squares, signed_;  // sums of errors in units of their scale
};

namespace {

enum { kFinite, kNan, kPlus, kMinus };
enum { kF64, kF32, kF16, kBf16, kE4m3, kE5m2, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };

__device__ double infinity() {
  return __longlong_as_double(0x7ff0000000000000);
}
__device__ double not_a_number() {
  return __longlong_as_double(0x7ff8000000000000);
}

__device__ int class_of(double v) {
  if (v != v) return kNan;
  if (v == infinity()) return kPlus;
  if (v == -infinity()) return kMinus;
  return kFinite;
}

// A float with `fraction` explicit mantissa bits and `exponent_bits` exponent bits above them.
__device__ double small_float(unsigned bits, int exponent_bits, int fraction) {
  const unsigned sign = bits >> (exponent_bits + fraction) & 1;
  const int exponent = int(bits >> fraction & ((1u << exponent_bits) - 1));
  const unsigned rest = bits & ((1u << fraction) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  double value;
  if (exponent == top)
    value = rest ? not_a_number() : infinity();
  else if (exponent == 0)
    value = scalbn(double(rest), 1 - bias - fraction);
  else
    value = scalbn(double(rest | 1u << fraction), exponent - bias - fraction);
  return sign ? -value : value;
}

// E4M3 has no infinity. All ones are NaN; the other values with the top exponent are finite.
__device__ double e4m3(unsigned bits) {
  if ((bits & 0x7f) == 0x7f) return not_a_number();
  const int exponent = int(bits >> 3 & 15);
  const unsigned rest = bits & 7;
  const double value = exponent ? scalbn(double(rest | 8), exponent - 10) : scalbn(double(rest), -9);
  return bits & 0x80 ? -value : value;
}

__device__ double load(int dtype, const void* from, word i) {
  switch (dtype) {
    case kF64:
      return static_cast<const double*>(from)[i];
    case kF32:
      return static_cast<const float*>(from)[i];
    case kF16:
      return small_float(static_cast<const unsigned short*>(from)[i], 5, 10);
    case kBf16:
      return __uint_as_float(unsigned(static_cast<const unsigned short*>(from)[i]) << 16);
    case kE4m3:
      return e4m3(static_cast<const unsigned char*>(from)[i]);
    case kE5m2:
      return small_float(static_cast<const unsigned char*>(from)[i], 5, 2);
    case kI64:
      return double(static_cast<const long long*>(from)[i]);
    case kI32:
      return static_cast<const int*>(from)[i];
    case kI16:
      return static_cast<const short*>(from)[i];
    case kI8:
      return static_cast<const signed char*>(from)[i];
    case kU64:
      return double(static_cast<const word*>(from)[i]);
    case kU32:
      return static_cast<const unsigned*>(from)[i];
    case kU16:
      return static_cast<const unsigned short*>(from)[i];
    default:
      return static_cast<const unsigned char*>(from)[i];
  }
}

__device__ int bytes_of(int dtype) {
  if (dtype == kF64 || dtype == kI64 || dtype == kU64) return 8;
  if (dtype == kF32 || dtype == kI32 || dtype == kU32) return 4;
  return dtype == kF16 || dtype == kBf16 || dtype == kI16 || dtype == kU16 ? 2 : 1;
}

__device__ bool holds(const void* from, int dtype, word i, word poison) {
  const int bytes = bytes_of(dtype);
  const unsigned char* at = static_cast<const unsigned char*>(from) + i * bytes;
  const word begin = i * bytes % 8;
  for (int b = 0; b < bytes; ++b)
    if (at[b] != (poison >> 8 * (begin + b) & 0xff)) return false;
  return true;
}

// A margin says how much an element may differ. Its sign bit also permits NaN; an infinite margin
// permits any value.
__device__ bool any_value(double margin) {
  return class_of(margin) == kPlus || class_of(margin) == kMinus;
}
__device__ bool nan_too(double margin) {
  return __double_as_longlong(margin) < 0 && margin == margin;
}

__device__ double scale_of(const Rule& r, double truth, double native, double margin) {
  const double size = class_of(truth) == kFinite    ? fabs(truth)
                      : class_of(native) == kFinite ? fabs(native)
                                                    : 0.0;
  return fmax(fabs(margin), __dmul_rn(r.eps, size));
}

__device__ double tolerance_of(const Rule& r, double truth, double scale) {
  const double own = __dadd_rn(__dmul_rn(r.factor, scale), r.least);
  if (r.rtol < 0 && r.atol < 0) return own;
  const double size = class_of(truth) == kFinite ? fabs(truth) : 0.0;
  return fmin(own, __dadd_rn(fmax(r.atol, 0.0), __dmul_rn(fmax(r.rtol, 0.0), size)));
}

// Returns 0 if `value` passes, else error / tolerance (infinity for a wrong class of value).
__device__ double miss(const Rule& r, double value, double truth, double native, double tolerance,
                       bool nan_is_fine) {
  const int got = class_of(value), other = class_of(native);
  const bool truth_is_finite = class_of(truth) == kFinite;
  if (got == kFinite && truth_is_finite) {
    const double error = fabs(__dsub_rn(value, truth));
    return error <= tolerance ? 0 : __ddiv_rn(error, tolerance);
  }
  if (got == kNan && nan_is_fine) return 0;
  int want = class_of(truth);
  if (want != kNan && fabs(truth) >= r.overflow)
    want = r.overflows_to_nan ? kNan : truth > 0 ? kPlus : kMinus;
  if (got == kFinite)
    return other == kFinite && fabs(__dsub_rn(value, native)) <= tolerance ? 0 : infinity();
  if (got == want || got == other) return 0;
  const bool near_overflow = got != kNan && truth_is_finite &&
                             __dadd_rn(fabs(truth), tolerance) > r.largest &&
                             (truth > 0) == (got == kPlus);
  return near_overflow ? 0 : infinity();
}

__device__ bool is_finite(double v) {
  return class_of(v) == kFinite;
}

__device__ double off_by(const Rule& r, double value, double truth, double native,
                         const double* margin, word i, Tally& t) {
  if (r.nan_is_undefined && truth != truth) return 0;
  if (r.dtype <= kE5m2) {
    const double m = margin[i];
    if (any_value(m)) return 0;
    const double scale = scale_of(r, truth, native, m);
    if (is_finite(value) && is_finite(truth)) {
      const double error = __ddiv_rn(__dsub_rn(value, truth), __dadd_rn(scale, r.least));
      ++t.finite;
      t.squares += error * error;
      t.signed_ += truth < 0 ? -error : error;
    }
    return miss(r, value, truth, native, tolerance_of(r, truth, scale), nan_too(m));
  }
  if (any_value(margin[i])) return 0;
  if (r.dtype == kBool) return (value != 0) == (truth != 0) && value <= 1 ? 0 : 2;
  // A rounding of the inputs may change the integer by one.
  if (margin[i] >= 1 && fabs(__dsub_rn(value, truth)) <= 1) return 0;
  return value == truth || value == native ? 0 : 2;
}

__device__ bool is_close(const Rule& r, double value, double native) {
  if (value == native || (value != value && native != native)) return true;
  return fabs(__dsub_rn(value, native)) <=
         __dadd_rn(r.close, __dmul_rn(r.close, fabs(native)));
}

// Adds once per warp, because a million threads' atomics on three addresses would serialise.
__device__ void add_sums(Tally t, Tally* tally) {
  for (int step = 16; step > 0; step /= 2) {
    t.finite += __shfl_xor_sync(~0u, t.finite, step);
    t.squares += __shfl_xor_sync(~0u, t.squares, step);
    t.signed_ += __shfl_xor_sync(~0u, t.signed_, step);
  }
  if (threadIdx.x % 32 != 0 || t.finite == 0) return;
  atomicAdd(&tally->finite, t.finite);
  atomicAdd(&tally->squares, t.squares);
  atomicAdd(&tally->signed_, t.signed_);
}

}  // namespace

// Judges elements [from, from + count) of an output. If `mask` is not null, mask[0] is for `from`.
extern "C" __global__ void judge(const void* output, const double* truth, const void* native,
                                 const double* margin, unsigned char* mask, Tally* tally,
                                 const Rule* rule, word from, word count) {
  const Rule r = *rule;
  Tally t = {0, 0, 0, 0, 0, ~word(0), 0, 0, 0, 0, 0};
  for (word k = blockIdx.x * word(blockDim.x) + threadIdx.x; k < count;
       k += word(gridDim.x) * blockDim.x) {
    const word i = from + k;
    const double value = load(r.dtype, output, i), reference = load(r.dtype, native, i);
    const double ratio = off_by(r, value, truth[i], reference, margin, i, t);
    t.not_close += !is_close(r, value, reference);
    if (mask) mask[k] = ratio != 0;
    if (ratio == 0) continue;
    ++t.wrong;
    t.nan += value != value;
    t.zero += value == 0;
    t.unwritten += holds(output, r.dtype, i, r.poison);
    if (i < t.first) t.first = i;
    if (i > t.last) t.last = i;
    const word bits = word(__double_as_longlong(ratio));
    if (ratio < infinity() && bits > t.worst) t.worst = bits;
  }
  add_sums(t, tally);
  if (t.not_close) atomicAdd(&tally->not_close, t.not_close);
  if (t.wrong == 0) return;
  atomicAdd(&tally->wrong, t.wrong);
  atomicAdd(&tally->nan, t.nan);
  atomicAdd(&tally->zero, t.zero);
  atomicAdd(&tally->unwritten, t.unwritten);
  atomicMin(&tally->first, t.first);
  atomicMax(&tally->last, t.last);
  atomicMax(&tally->worst, t.worst);
}

// Fills `words` words of eight bytes.
extern "C" __global__ void fill(word* at, word words, word value) {
  for (word k = blockIdx.x * word(blockDim.x) + threadIdx.x; k < words;
       k += word(gridDim.x) * blockDim.x)
    at[k] = value;
}
