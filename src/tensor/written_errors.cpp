// SPDX-License-Identifier: Apache-2.0
#include "tensor/written_errors.h"

#include <cmath>

namespace cutegen {
namespace {

AggregateLimits looser(const AggregateLimits& a, AggregateLimits b) {
  b.native_rms = std::max(a.native_rms, b.native_rms);
  b.sequential_rms = std::max(a.sequential_rms, b.sequential_rms);
  b.rms = std::max(a.rms, b.rms);
  if (std::abs(a.native_bias) > std::abs(b.native_bias)) b.native_bias = a.native_bias;
  b.bias = std::max(a.bias, b.bias);
  b.apply = a.apply && b.apply;
  return b;
}

}  // namespace

void WrittenErrors::add(size_t element, double value) {
  const double error = error_in_units(e_, element, value);
  if (!std::isfinite(error)) return;
  Errors& at = of_[element];
  at.sum += error;
  at.squares += error * error;
  ++at.count;
}

Judgement WrittenErrors::judgement() const {
  std::vector<uint8_t> written(of_.size());
  int64_t elements = 0;
  double squares = 0, bias = 0;
  for (size_t i = 0; i < of_.size(); ++i) {
    if (of_[i].count == 0) continue;
    const auto times = double(of_[i].count);
    written[i] = 1;
    ++elements;
    squares += of_[i].squares / times;
    bias += (e_.truth[i] < 0 ? -1 : 1) * of_[i].sum / times;
  }
  const AggregateError whole(elements, squares, bias);
  Judgement out;
  out.elements = elements;
  out.rms = whole.rms(), out.bias = whole.bias();
  if (e_.references && elements >= kLeastWritten)
    out.limits = looser(e_.limits, limits_among(e_, written));
  return out;
}

}  // namespace cutegen
