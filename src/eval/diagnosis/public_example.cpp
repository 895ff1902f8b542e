// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/public_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/diagnosis/dependence.h"
#include "eval/diagnosis/feedback.h"
#include "tensor/half.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostTensors = 3;
constexpr size_t kMostValues = 4;  // of one tensor

std::vector<int64_t> coordinates(size_t element, const Shape& shape) {
  std::vector<int64_t> out(shape.size());
  auto rest = int64_t(element);
  for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) out[d] = rest % shape[d];
  return out;
}

std::string number(DType dtype, double value) {
  if (std::isnan(value)) return "NaN";
  if (!is_floating(dtype)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}g}", value, size_of(dtype) < 4 ? 5 : 9);
}

std::vector<size_t> first_wrong_elements(const Judgement& j) {
  std::vector<size_t> out;
  for (size_t i = 0; i < j.is_wrong.size() && out.size() < kMostExamples; ++i)
    if (j.is_wrong[i]) out.push_back(i);
  return out;
}

std::vector<size_t> largest_error_elements(const Expected& e, std::span<const std::byte> output) {
  std::vector<std::pair<double, size_t>> errors;
  const size_t step = size_of(e.spec.dtype);
  for (size_t i = 0; i < e.truth.size(); ++i) {
    const double error =
        std::abs(error_in_units(e, i, load_double(e.spec.dtype, output.data() + i * step)));
    if (std::isfinite(error)) errors.emplace_back(-error, i);
  }
  const size_t most = std::min(errors.size(), kMostExamples);
  std::partial_sort(errors.begin(), errors.begin() + long(most), errors.end());
  std::vector<size_t> out;
  for (size_t i = 0; i < most; ++i) out.push_back(errors[i].second);
  return out;
}

// "w[0:512, 96] = 0.5, -0.25, 1, 2, ...": the first values of a region, in the tensor's order.
std::string region_text(const InputValues& input, const Region& region) {
  std::vector<std::string> index, values;
  for (const IndexRange& r : region)
    index.push_back(r.low == r.high ? fmt::format("{}", r.low)
                                    : fmt::format("{}:{}", r.low, r.high + 1));
  std::vector<int64_t> at;
  for (const IndexRange& r : region) at.push_back(r.low);
  bool more = true;
  while (more && values.size() < kMostValues) {
    size_t element = 0;
    for (size_t d = 0; d < at.size(); ++d)
      element = element * size_t(input.shape[d]) + size_t(at[d]);
    const std::byte* from = input.bytes.data() + element * size_of(input.dtype);
    values.push_back(number(input.dtype, load_double(input.dtype, from)));
    more = false;
    for (size_t d = at.size(); !more && d-- > 0;) {
      more = ++at[d] <= region[d].high;
      if (!more) at[d] = region[d].low;
    }
  }
  return fmt::format("{}[{}] = {}{}", input.name, fmt::join(index, ", "), fmt::join(values, ", "),
                     more ? ", ..." : "");
}

}  // namespace

std::string wrong_values(const Task& task, const ShapeCase& shape, const Expected& e,
                         const Judgement& judgement, std::span<const std::byte> output,
                         const std::vector<InputValues>& inputs) {
  const std::vector<size_t> elements =
      judgement.wrong > 0 ? first_wrong_elements(judgement) : largest_error_elements(e, output);
  std::string out;
  for (size_t i : elements) {
    const std::vector<int64_t> at = coordinates(i, e.spec.shape);
    const double got = load_double(e.spec.dtype, output.data() + i * size_of(e.spec.dtype));
    std::string line = fmt::format("{}[{}]: expected {}, got {}", e.spec.name, fmt::join(at, ", "),
                                   number(e.spec.dtype, e.truth[i]), number(e.spec.dtype, got));
    const auto behind = elements_behind(task, shape, e.spec.name, at);
    size_t told = 0;
    for (const InputValues& input : inputs) {
      auto it = behind.find(input.name);
      if (it == behind.end() || !it->second || told == kMostTensors) continue;
      line += (told++ ? "; " : "; from ") + region_text(input, *it->second);
    }
    if (out.size() + line.size() + 1 > kMostExampleText) break;
    out += line + "\n";
  }
  return out;
}

std::string public_run_text(const std::vector<Mismatch>& mismatches, const std::string& values,
                            const std::string& headline) {
  const std::string begin = fmt::format(
      "On other inputs of this shape and distribution (from the published seed {}, not secret), ",
      kPublicSeed);
  if (!headline.empty() && mismatches.empty())
    return begin + "the program fails: " + headline + "\n";
  if (mismatches.empty()) return begin + "the program is correct.\n";
  const Mismatch& m = mismatches.front();
  if (m.gate != Gate::element) return begin + "it also fails. The largest errors there:\n" + values;
  return begin + fmt::format("{} of {} elements of {} are wrong ({}). The first ones:\n{}", m.wrong,
                             m.elements, m.output, m.pattern, values);
}

std::string after_first_mismatch(std::string detail, const std::vector<Mismatch>& mismatches,
                                 const std::string& text) {
  const std::string first = mismatches.empty() ? "" : details_of(mismatches.front()) + "\n";
  return detail.insert(detail.starts_with(first) ? first.size() : detail.size(), text);
}

}  // namespace cutegen::eval
