// SPDX-License-Identifier: Apache-2.0
#include "tensor/aggregate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tensor/compare.h"

namespace cutegen {
namespace {

// With few independent errors, both sides of the comparison vary by chance, so the limit is wider.
constexpr double kLuck = 4;
// With 64 independent errors, a bias of a quarter of the limit is systematic (5 standard errors).
constexpr double kBiasShare = 0.25, kBiasErrors = 64;
// Slices share a cause if their means vary by more than kShared times what independent errors would
// give. Few slices may agree by chance, so for them kSharedByFew is enough.
constexpr double kShared = 4, kSharedByFew = 0.3, kFewSlices = 8;

struct Moments {
  double sum = 0, squares = 0, count = 0;
  void add(double v) {
    sum += v;
    squares += v * v;
    ++count;
  }
  double variance() const {
    if (count < 2) return 0;
    const double mean = sum / count;
    return std::max(0.0, squares / count - mean * mean);
  }
};

// The variance of the slice means along `axis`, relative to independent elements, and the number of
// slices with finite errors.
struct Excess {
  double variance = 0;
  double slices = 0;
};

Excess excess_of(std::span<const double> errors, const Shape& shape, size_t axis) {
  size_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= size_t(shape[d]);
  const auto slices = size_t(shape[axis]);
  std::vector<Moments> of_slice(slices);
  Moments all, means;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!std::isfinite(errors[i])) continue;
    of_slice[i / inner % slices].add(errors[i]);
    all.add(errors[i]);
  }
  double per_slice = 0;
  for (const Moments& m : of_slice)
    if (m.count > 0) means.add(m.sum / m.count), per_slice += m.count;
  Excess out{.variance = 0, .slices = means.count};
  if (means.count >= 2 && all.variance() > 0)
    out.variance = means.variance() * (per_slice / means.count) / all.variance();
  return out;
}

}  // namespace

double AggregateError::rms() const {
  return count_ ? std::sqrt(squares_ / double(count_)) : 0;
}

double AggregateError::bias() const {
  return count_ ? signed_ / double(count_) : 0;
}

AggregateLimits aggregate_limits(const ToleranceRule& rule, const HonestErrors& honest,
                                 Independent independent) {
  AggregateLimits out;
  out.apply = rule.rms > 0 && honest.native.count() > 0;
  out.native_rms = honest.native.rms();
  out.native_bias = honest.native.bias();
  const bool known = honest.sequential.count() > 0;
  out.sequential_rms = known ? honest.sequential.rms() : rule.growth * out.native_rms;
  const double base = std::max({out.native_rms, out.sequential_rms, honest.floor_rms});
  out.rms = rule.rms * base * (1 + kLuck / std::sqrt(std::max(independent.rms, 1.0)));
  const double seen =
      std::max(std::abs(out.native_bias), known ? std::abs(honest.sequential.bias()) : 0.0);
  const double few = std::max(1.0, kBiasErrors / std::max(independent.bias, 1.0));
  const double share = std::min(1.0, kBiasShare * std::sqrt(few));
  out.bias = std::max({rule.rms * seen, share * out.rms, honest.floor_bias});
  return out;
}

Independent independent_errors(std::span<const double> errors, const Shape& shape) {
  const auto all = double(errors.size());
  Independent out{.rms = all, .bias = all};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const auto slices = double(shape[axis]);
    if (slices < 2 || slices >= out.bias) continue;
    const Excess found = excess_of(errors, shape, axis);
    const double left = std::max(found.slices, 1.0);
    const double by_few = left < kFewSlices ? kSharedByFew : kShared;
    // Infinite inputs may leave few finite slices, which may agree by chance.
    const bool lost = left < slices;
    if (left < 2 || found.variance > (lost ? by_few : kShared)) out.rms = std::min(out.rms, left);
    if (left < 2 || found.variance > by_few) out.bias = std::min(out.bias, left);
  }
  return out;
}

WorstSlices worst_slices(std::span<const double> native, std::span<const double> sequential,
                         const Shape& shape) {
  constexpr size_t kLeastSlices = 4, kOneIn = 10;
  WorstSlices out;
  double most = kShared;
  size_t inner = 1;
  for (size_t axis = shape.size(); axis-- > 0; inner *= size_t(shape[axis])) {
    const auto slices = size_t(shape[axis]);
    if (slices < kLeastSlices) continue;
    double excess = excess_of(native, shape, axis).variance;
    if (!sequential.empty()) excess = std::max(excess, excess_of(sequential, shape, axis).variance);
    if (excess > most) most = excess, out.inner = inner, out.size = slices;
  }
  if (out.size < kLeastSlices) return out;
  std::vector<std::pair<double, size_t>> size_of(out.size);
  for (size_t i = 0; i < out.size; ++i) size_of[i] = {0, i};
  for (const auto& errors : {native, sequential})
    for (size_t i = 0; i < errors.size(); ++i)
      if (std::isfinite(errors[i]))
        size_of[i / out.inner % out.size].first += errors[i] * errors[i];
  const size_t left_out = std::max<size_t>(1, out.size / kOneIn);
  std::nth_element(size_of.begin(), size_of.begin() + std::ptrdiff_t(left_out), size_of.end(),
                   std::greater<>());
  out.worst.assign(out.size, 0);
  for (size_t i = 0; i < left_out; ++i) out.worst[size_of[i].second] = 1;
  return out;
}

Independent independent_errors(const Shape& shape) {
  double least = 0, all = 1;
  for (int64_t d : shape) {
    all *= double(d);
    if (d > 1) least = least == 0 ? double(d) : std::min(least, double(d));
  }
  if (least == 0) least = all;
  return {.rms = least, .bias = least};
}

}  // namespace cutegen
