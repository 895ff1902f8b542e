// SPDX-License-Identifier: Apache-2.0
#include "tensor/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <utility>

#include "tensor/half.h"

namespace cutegen {
namespace {

constexpr size_t kReach = 32;   // the window: the element and 32 neighbours on either side
constexpr double kInOrder = 4;  // permitted multiple of a sequential sum's error

enum class Class { finite, nan, plus, minus };

Class class_of(double v) {
  if (std::isnan(v)) return Class::nan;
  if (std::isinf(v)) return v > 0 ? Class::plus : Class::minus;
  return Class::finite;
}

bool has(const Expected& e, size_t i, OrderFlag flag) {
  return !e.order.empty() && (e.order[i] & flag) != 0;
}

// 0 if `value` passes, else error / tolerance (infinity for a wrong class).
double miss(const Expected& e, size_t i, double value) {
  constexpr double kWrongClass = std::numeric_limits<double>::infinity();
  DType dtype = e.spec.dtype;
  double truth = e.truth[i], native = e.native[i], tolerance = e.tolerance[i];
  Class got = class_of(value);
  if (got == Class::finite && std::isfinite(truth)) {
    double error = std::abs(value - truth);
    return error <= tolerance ? 0 : error / tolerance;
  }
  if (got == Class::nan && has(e, i, kNanToo)) return 0;
  Class want = class_of(round_to(dtype, truth)), other = class_of(native);
  if (got == Class::finite)  // the truth is not finite, but the native reference may be
    return other == Class::finite && std::abs(value - native) <= tolerance ? 0 : kWrongClass;
  if (got == want || got == other) return 0;
  bool near_overflow = got != Class::nan && std::isfinite(truth) &&
                       std::abs(truth) + tolerance > largest_finite(dtype) &&
                       (truth > 0) == (got == Class::plus);
  return near_overflow ? 0 : kWrongClass;
}

bool is_poison(std::span<const std::byte> output, size_t at, size_t bytes, const Poison& poison) {
  for (size_t b = at; b < at + bytes; ++b)
    if (output[b] != poison[b % poison.size()]) return false;
  return true;
}

void mark(Judgement& j, size_t i) {
  if (j.is_wrong.empty()) j.is_wrong.assign(size_t(j.elements), 0);
  j.is_wrong[i] = 1;
  ++j.wrong;
}

// Whether an element counts towards the output as a whole.
bool counts(const Expected& e, size_t i, double value) {
  return std::isfinite(e.truth[i]) && std::isfinite(value) && !has(e, i, kAnyValue) &&
         !has(e, i, kOutsideWhole);
}

using Chosen = std::span<const uint8_t>;  // one byte per element; empty: all elements

bool is_among(const Expected& e, size_t i, Chosen chosen) {
  return counts(e, i, 0) && (chosen.empty() || chosen[i] != 0);
}

std::vector<double> errors_in_units(const Expected& e, std::span<const double> values) {
  std::vector<double> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) out[i] = error_in_units(e, i, values[i]);
  return out;
}

AggregateError whole_error(const Expected& e, std::span<const double> errors) {
  AggregateError out;
  for (size_t i = 0; i < errors.size(); ++i)
    if (std::isfinite(errors[i])) out.add(errors[i], e.truth[i]);
  return out;
}

// The bias of the chosen elements if each one's error is kTruncation, relative to the truth.
double truncation_of(const Expected& e, Chosen chosen) {
  AggregateError out;
  for (size_t i = 0; i < e.truth.size(); ++i)
    if (is_among(e, i, chosen)) out.add(kTruncation * std::abs(e.truth[i]) / e.unit[i], 1);
  return out.bias();
}

// For each element, the error of rounding the inputs once and rounding the result.
std::vector<double> rounding_of(const Expected& e, std::span<const double> sensitivity,
                                const ToleranceRule& rule) {
  std::vector<double> out(e.truth.size(), 0);
  for (size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(e.truth[i])) continue;
    out[i] = rule.floor_eps * std::abs(e.truth[i]);
    if (!sensitivity.empty() && std::isfinite(sensitivity[i]))
      out[i] = std::max(out[i], rule.sensitivity * std::abs(sensitivity[i]));
    out[i] /= e.unit[i];
  }
  return out;
}

double floor_of(const Expected& e, std::span<const double> rounding, Chosen chosen) {
  AggregateError out;
  for (size_t i = 0; i < rounding.size(); ++i)
    if (is_among(e, i, chosen)) out.add(rounding[i], 1);
  return out.rms();
}

// Excludes the slices with by far the largest reference errors from the output as a whole.
void leave_out_worst_slices(Expected& e, std::span<const double> sequential) {
  const WorstSlices slices = worst_slices(errors_in_units(e, e.native), sequential, e.spec.shape);
  if (slices.worst.empty()) return;
  if (e.order.empty()) e.order.assign(e.truth.size(), 0);
  for (size_t i = 0; i < e.order.size(); ++i)
    if (slices.has(i)) e.order[i] |= kOutsideWhole;
}

Independent fewer(Independent a, Independent b) {
  return {.rms = std::min(a.rms, b.rms), .bias = std::min(a.bias, b.bias)};
}

// Errors of the chosen elements; NaN elsewhere.
std::vector<double> only(std::vector<double> errors, const Expected& e, Chosen chosen) {
  for (size_t i = 0; i < errors.size(); ++i)
    if (!is_among(e, i, chosen)) errors[i] = std::numeric_limits<double>::quiet_NaN();
  return errors;
}

AggregateLimits limits_of(const Expected& e, const ReferenceErrors& references, Chosen chosen) {
  const std::vector<double> native = only(errors_in_units(e, e.native), e, chosen);
  const std::vector<double> in_order = only(references.sequential, e, chosen);
  Independent independent = independent_errors(native, e.spec.shape);
  if (!in_order.empty())
    independent = fewer(independent, independent_errors(in_order, e.spec.shape));
  const HonestErrors honest{.native = whole_error(e, native),
                            .sequential = whole_error(e, in_order),
                            .floor_rms = floor_of(e, references.rounding, chosen),
                            .floor_bias = truncation_of(e, chosen)};
  const auto known = double(honest.native.count());
  independent = fewer(independent, {.rms = known, .bias = known});
  AggregateLimits out = aggregate_limits(references.rule, honest, independent);
  // One to three independent errors may be chance: judge the elements alone.
  constexpr double kLeastErrors = 4;
  out.apply = out.apply && independent.rms >= kLeastErrors;
  return out;
}

void note_order(Expected& e, std::span<const double> sensitivity) {
  for (size_t i = 0; i < sensitivity.size(); ++i) {
    const double s = sensitivity[i];
    const uint8_t flags = std::isinf(s)                          ? kAnyValue
                          : std::signbit(s) && !std::isnan(s)    ? kNanToo
                          : s >= 1 && !is_floating(e.spec.dtype) ? kOneStep
                                                                 : 0;
    if (flags == 0) continue;
    if (e.order.empty()) e.order.assign(sensitivity.size(), 0);
    e.order[i] = flags;
  }
}

// For each element, the largest error among itself and its neighbours in the order of |truth|.
std::vector<double> errors_nearby(const Expected& e, std::span<const double> values) {
  std::vector<double> error(values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const double d = std::abs(values[i] - e.truth[i]);
    if (std::isfinite(d)) error[i] = d;
  }
  return error.empty() ? error : smooth_by_magnitude(e.truth, error, kReach);
}

struct Ranked {
  uint64_t bits;  // bits of a magnitude, which sort as the magnitude does
  uint32_t index;
};

// A stable radix sort, because sorting many elements by comparisons would take most of the time to
// prepare a set.
void sort_by_bits(std::vector<Ranked>& order) {
  constexpr int kDigitBits = 16, kDigits = 4;
  constexpr size_t kDigitValues = size_t{1} << kDigitBits;
  if (order.size() < kDigitValues / 16) {
    std::ranges::stable_sort(order, {}, &Ranked::bits);
    return;
  }
  std::vector<Ranked> sorted(order.size());
  std::vector<uint32_t> place(kDigitValues);
  for (int digit = 0; digit < kDigits; ++digit) {
    auto value_of = [&](const Ranked& r) {
      return size_t(r.bits >> (digit * kDigitBits)) & (kDigitValues - 1);
    };
    std::ranges::fill(place, 0);
    for (const Ranked& r : order) ++place[value_of(r)];
    uint32_t first = 0;
    for (uint32_t& p : place) first += std::exchange(p, first);
    for (const Ranked& r : order) sorted[place[value_of(r)]++] = r;
    order.swap(sorted);
  }
}

double narrowed(double tolerance, double truth, const ToleranceRule& rule) {
  if (rule.rtol < 0 && rule.atol < 0) return tolerance;
  const double size = std::isfinite(truth) ? std::abs(truth) : 0;
  return std::min(tolerance, std::max(rule.atol, 0.0) + std::max(rule.rtol, 0.0) * size);
}

}  // namespace

ToleranceRule for_dtype(ToleranceRule rule, DType dtype) {
  constexpr double kNarrowFactor = 4;
  const double half = half_ulp(dtype);
  if (half <= rule.eps) return rule;
  // The dtype is coarser than the math mode, and the native result is rounded to it. A factor of 32
  // would accept results that the dtype's own math mode rejects.
  rule.factor *= kNarrowFactor / std::max(kNarrowFactor, rule.factor);
  rule.eps = half;
  rule.floor_eps = half / 2;
  rule.growth = 1;
  return rule;
}

std::vector<double> smooth_by_magnitude(std::span<const double> key, std::span<const double> values,
                                        size_t reach) {
  std::vector<double> out(values.begin(), values.end());
  if (std::ranges::adjacent_find(out, std::ranges::not_equal_to()) == out.end()) return out;
  std::vector<Ranked> order;
  order.reserve(key.size());
  for (size_t i = 0; i < key.size(); ++i)
    if (!std::isnan(key[i]))
      order.push_back({.bits = std::bit_cast<uint64_t>(std::abs(key[i])), .index = uint32_t(i)});
  sort_by_bits(order);
  std::deque<size_t> window;  // ranks with decreasing values; the front is the maximum
  for (size_t rank = 0, next = 0; rank < order.size(); ++rank) {
    for (; next < order.size() && next <= rank + reach; ++next) {
      while (!window.empty() && values[order[window.back()].index] <= values[order[next].index])
        window.pop_back();
      window.push_back(next);
    }
    while (window.front() + reach < rank) window.pop_front();
    out[order[rank].index] = values[order[window.front()].index];
  }
  return out;
}

Expected make_expected(OutputSpec spec, std::vector<double> truth, std::vector<double> native,
                       std::span<const double> sensitivity, ToleranceRule rule,
                       std::span<const double> sequential, KeepReferences keep) {
  CG_ASSERT(truth.size() == native.size());
  CG_ASSERT(sensitivity.empty() || sensitivity.size() == truth.size());
  CG_ASSERT(sequential.empty() || sequential.size() == truth.size());
  Expected e{.spec = std::move(spec),
             .truth = std::move(truth),
             .native = std::move(native),
             .tolerance = {}};
  note_order(e, sensitivity);
  if (!is_floating(e.spec.dtype)) return e;
  rule = for_dtype(rule, e.spec.dtype);
  size_t n = e.truth.size();
  e.tolerance = errors_nearby(e, e.native);
  const std::vector<double> in_order = errors_nearby(e, sequential);
  double eps = std::max(rule.eps, half_ulp(e.spec.dtype));
  double least = flush_error(e.spec.dtype);
  e.unit.resize(n);
  for (size_t i = 0; i < n; ++i) {
    double size = std::isfinite(e.truth[i])    ? std::abs(e.truth[i])
                  : std::isfinite(e.native[i]) ? std::abs(e.native[i])
                                               : 0.0;
    double scale = std::max(e.tolerance[i], eps * size);
    if (!sensitivity.empty() && std::isfinite(sensitivity[i]))
      scale = std::max(scale, std::abs(sensitivity[i]));
    e.unit[i] = scale + least;
    const double least_honest = in_order.empty() ? 0 : kInOrder * in_order[i];
    e.tolerance[i] =
        narrowed(std::max(rule.factor * scale, least_honest) + least, e.truth[i], rule);
  }
  ReferenceErrors references{.sequential = errors_in_units(e, sequential),
                             .rounding = rounding_of(e, sensitivity, rule),
                             .rule = rule};
  leave_out_worst_slices(e, references.sequential);
  e.limits = limits_of(e, references, {});
  if (keep == KeepReferences::yes)
    e.references = std::make_shared<ReferenceErrors>(std::move(references));
  return e;
}

double error_in_units(const Expected& e, size_t i, double value) {
  return counts(e, i, value) ? (value - e.truth[i]) / e.unit[i]
                             : std::numeric_limits<double>::quiet_NaN();
}

AggregateLimits limits_among(const Expected& e, std::span<const uint8_t> chosen) {
  CG_ASSERT(e.references && chosen.size() == e.truth.size());
  return limits_of(e, *e.references, chosen);
}

Judgement judge(const Expected& e, std::span<const std::byte> output, const Poison* poison) {
  DType dtype = e.spec.dtype;
  size_t step = size_of(dtype), n = e.truth.size();
  CG_ASSERT(output.size() == n * step);
  Judgement j;
  j.elements = int64_t(n);
  bool floating = is_floating(dtype);
  AggregateError whole;
  for (size_t i = 0; i < n; ++i) {
    double value = load_double(dtype, output.data() + i * step);
    double ratio = 0;
    if ((e.nan_is_undefined && std::isnan(e.truth[i])) || has(e, i, kAnyValue)) continue;
    if (floating) {
      if (counts(e, i, value)) whole.add((value - e.truth[i]) / e.unit[i], e.truth[i]);
      ratio = miss(e, i, value);
    } else if (dtype == DType::boolean) {
      ratio = (value != 0) == (e.truth[i] != 0) && value <= 1 ? 0 : 2;
    } else {
      const bool near = has(e, i, kOneStep) && std::abs(value - e.truth[i]) <= 1;
      ratio = near || value == e.truth[i] || value == e.native[i] ? 0 : 2;
    }
    if (ratio == 0) continue;
    mark(j, i);
    if (std::isnan(value)) ++j.nan;
    if (value == 0) ++j.zero;
    if (std::isfinite(ratio)) j.worst_ratio = std::max(j.worst_ratio, ratio);
    if (poison && is_poison(output, i * step, step, *poison)) ++j.unwritten;
  }
  j.rms = whole.rms(), j.bias = whole.bias(), j.limits = e.limits;
  return j;
}

int64_t count_not_close(const Expected& e, std::span<const std::byte> output, double tolerance) {
  size_t step = size_of(e.spec.dtype), n = e.truth.size();
  CG_ASSERT(output.size() == n * step);
  int64_t bad = 0;
  for (size_t i = 0; i < n; ++i) {
    double y = load_double(e.spec.dtype, output.data() + i * step), r = e.native[i];
    bool same = y == r || (std::isnan(y) && std::isnan(r));
    if (!same && !(std::abs(y - r) <= tolerance + tolerance * std::abs(r))) ++bad;
  }
  return bad;
}

Errors largest_errors(const Expected& e, std::span<const std::byte> output) {
  const size_t step = size_of(e.spec.dtype), n = e.truth.size();
  CG_ASSERT(output.size() == n * step && e.tolerance.size() == n);
  Errors out;
  for (size_t i = 0; i < n; ++i) {
    const double own = std::abs(load_double(e.spec.dtype, output.data() + i * step) - e.truth[i]);
    const double native = std::abs(e.native[i] - e.truth[i]);
    if (!std::isfinite(own) || !std::isfinite(native)) continue;
    out.own = std::max(out.own, own);
    out.native = std::max(out.native, native);
    out.largest = std::max(out.largest, std::abs(e.truth[i]));
    if (e.tolerance[i] > 0) out.share = std::max(out.share, own / e.tolerance[i]);
  }
  return out;
}

}  // namespace cutegen
