// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/lazy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/text.h"
#include "core/floor.h"
#include "tensor/half.h"

namespace cutegen::eval {
namespace {

using Values = std::vector<double>;

LazyValues constant(const InputSet& set, size_t output, double value) {
  return Values(set.outputs[output].truth.size(), value);
}

double mean_of(const Values& v) {
  double sum = 0;
  int64_t count = 0;
  for (double x : v) {
    if (!std::isfinite(x)) continue;
    sum += x;
    ++count;
  }
  return count ? sum / double(count) : 0;
}

// Replaces every element with the mean of the truth over its group.
template <class F>
LazyValues group_means(const Expected& e, F group_of, size_t groups) {
  Values sum(groups, 0), count(groups, 0), out(e.truth.size());
  for (size_t i = 0; i < e.truth.size(); ++i) {
    if (!std::isfinite(e.truth[i])) continue;
    sum[group_of(i)] += e.truth[i];
    ++count[group_of(i)];
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = count[group_of(i)] ? sum[group_of(i)] / count[group_of(i)] : 0;
  return out;
}

// Replaces each element by the mean of all elements with the same index on one axis. Needs four
// elements per group, because the mean of a single element is the truth.
LazyValues axis_means(const InputSet& set, size_t output, int64_t axis) {
  const Expected& e = set.outputs[output];
  auto rank = int64_t(e.spec.shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || rank < 2) return std::nullopt;
  size_t inner = 1;
  for (int64_t d = axis + 1; d < rank; ++d) inner *= size_t(e.spec.shape[size_t(d)]);
  auto size = size_t(e.spec.shape[size_t(axis)]);
  if (inner == 0 || size == 0 || e.truth.size() < size * 4) return std::nullopt;
  return group_means(e, [&](size_t i) { return i / inner % size; }, size);
}

// The mean of each row (all but the last axis).
LazyValues row_means(const InputSet& set, size_t output) {
  const Expected& e = set.outputs[output];
  size_t columns = e.spec.shape.empty() ? 0 : size_t(e.spec.shape.back());
  if (columns < 4) return std::nullopt;
  return group_means(e, [&](size_t i) { return i / columns; }, e.truth.size() / columns);
}

LazyValues input_values(const InputSet& set, size_t output, const std::string& name) {
  for (const torch::TensorSlot& slot : set.inputs) {
    if (slot.name != name) continue;
    Values out(slot.bytes / size_of(slot.dtype));
    if (out.size() != set.outputs[output].truth.size()) return std::nullopt;
    to_double(slot.dtype, set.bytes_of(slot), out);
    return out;
  }
  return std::nullopt;
}

// Fits a * x + b to the truth by least squares over finite elements.
LazyValues linear_map(const InputSet& set, size_t output, const std::string& name) {
  LazyValues x = input_values(set, output, name);
  const Values& t = set.outputs[output].truth;
  if (!x || t.size() < 8) return std::nullopt;
  double n = 0, sx = 0, st = 0, sxx = 0, sxt = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    if (!std::isfinite(t[i]) || !std::isfinite((*x)[i])) continue;
    n += 1;
    sx += (*x)[i];
    st += t[i];
    sxx += (*x)[i] * (*x)[i];
    sxt += (*x)[i] * t[i];
  }
  double spread = n * sxx - sx * sx;
  if (n == 0 || spread == 0) return std::nullopt;
  double a = (n * sxt - sx * st) / spread, b = (st - a * sx) / n;
  for (double& v : *x) v = a * v + b;
  return x;
}

LazyValues replay(const InputSet& set, size_t output, const InputSet* first) {
  if (!first || first == &set) return std::nullopt;
  return first->outputs[output].truth;
}

LazyValues rounded(const InputSet& set, size_t output, int mantissa_bits) {
  const Expected& e = set.outputs[output];
  if (!is_floating(e.spec.dtype)) return std::nullopt;
  Values out = e.truth;
  for (double& v : out) v = keep_mantissa(v, mantissa_bits);
  return out;
}

// The truth, with zeros after the first `share` of the elements.
LazyValues unfinished(const InputSet& set, size_t output, double share) {
  Values out = set.outputs[output].truth;
  auto from = size_t(double(out.size()) * share);
  std::fill(out.begin() + std::ptrdiff_t(std::min(from, out.size() - 1)), out.end(), 0);
  return out;
}

LazyValues last_row_missing(const InputSet& set, size_t output) {
  const Expected& e = set.outputs[output];
  Values out = e.truth;
  size_t columns = e.spec.shape.size() < 2 ? 1 : size_t(e.spec.shape.back());
  std::fill(out.end() - std::ptrdiff_t(std::min(columns, out.size())), out.end(), 0);
  return out;
}

LazyValues last_column_missing(const InputSet& set, size_t output) {
  const Expected& e = set.outputs[output];
  size_t columns = e.spec.shape.empty() ? 0 : size_t(e.spec.shape.back());
  if (columns < 2) return std::nullopt;
  Values out = e.truth;
  for (size_t i = columns - 1; i < out.size(); i += columns) out[i] = 0;
  return out;
}

// Swaps the halves of each row, as a program with a wrong tile index would.
LazyValues halves_swapped(const InputSet& set, size_t output) {
  const Expected& e = set.outputs[output];
  size_t columns = e.spec.shape.empty() ? 0 : size_t(e.spec.shape.back());
  if (columns < 2) return std::nullopt;
  Values out = e.truth;
  for (auto row = out.begin(); row != out.end(); row += std::ptrdiff_t(columns))
    std::rotate(row, row + std::ptrdiff_t(columns / 2), row + std::ptrdiff_t(columns));
  return out;
}

// Removes signs, but not from an element that is negative only within its tolerance (a divergence),
// because its sign may be noise.
LazyValues without_signs(const InputSet& set, size_t output) {
  const Expected& e = set.outputs[output];
  Values out = e.truth;
  for (size_t i = 0; i < out.size(); ++i)
    if (e.tolerance.empty() || out[i] < -e.tolerance[i]) out[i] = std::abs(out[i]);
  return out;
}

// Random numbers with the truth's mean and variance. Impossible for fewer than four elements, which
// the two moments nearly determine.
LazyValues same_moments(const InputSet& set, size_t output) {
  const Values& t = set.outputs[output].truth;
  if (t.size() < 4) return std::nullopt;
  double mean = mean_of(t), square = 0, count = 0;
  for (double v : t) {
    if (!std::isfinite(v)) continue;
    square += (v - mean) * (v - mean);
    ++count;
  }
  double spread = count > 0 ? std::sqrt(square / count) : 0;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  Values out(t.size());
  for (double& v : out) v = mean + spread * normal(random);
  return out;
}

bool same_values(const Expected& e, const Values& answer) {
  for (size_t i = 0; i < answer.size(); ++i) {
    double t = round_to(e.spec.dtype, e.truth[i]), a = round_to(e.spec.dtype, answer[i]);
    if (!(t == a || (std::isnan(t) && std::isnan(a)))) return false;
  }
  return true;
}

struct Trial {
  bool formed = true, passes = true, exact = true;
};

// The results that a degenerate solution replaces; the others count as correct.
std::vector<size_t> tried_on(const LazyAnswer& answer, const InputSet& set) {
  std::vector<size_t> outputs, states;
  for (size_t o = 0; o < set.outputs.size(); ++o) {
    const Expected& e = set.outputs[o];
    const bool state = set.initial(e.spec.name) != nullptr;
    if (!e.truth.empty() && (answer.state.empty() || answer.state == e.spec.name))
      (state ? states : outputs).push_back(o);
  }
  return outputs.empty() ? states : outputs;
}

// Judges one degenerate solution on one set.
Trial try_answer(const LazyAnswer& answer, const InputSet& set, const InputSet* replayed) {
  Trial trial;
  const std::vector<size_t> results = tried_on(answer, set);
  if (results.empty() && !answer.state.empty())
    return {.formed = false, .passes = false, .exact = false};
  for (size_t o : results) {
    const Expected& e = set.outputs[o];
    LazyValues values = answer.values(set, o, replayed);
    if (!values || values->size() != e.truth.size())
      return {.formed = false, .passes = false, .exact = false};
    std::vector<std::byte> bytes(values->size() * size_of(e.spec.dtype));
    from_double(e.spec.dtype, *values, bytes);
    trial.passes = trial.passes && judge(e, bytes).passes();
    if (answer.exact_is_fine) trial.exact = trial.exact && same_values(e, *values);
  }
  return trial;
}

// Bytes of these tensors at `shape`.
int64_t bytes_read(const Task& task, const ShapeCase& shape,
                   const std::vector<std::string>& names) {
  int64_t total = 0;
  for (const std::string& name : names) {
    const TensorInfo* info = task.find(name);
    auto at = shape.tensors.find(name);
    if (!info || at == shape.tensors.end()) continue;
    auto count = element_count(at->second);
    if (!count || __builtin_add_overflow(total, *count * int64_t(size_of(info->dtype)), &total))
      return INT64_MAX;
  }
  return total;
}

// Keeps the inputs of the solution that passes everywhere and reads the fewest bytes.
void keep_least_reads(const Task& task, const LazyAnswer& answer, Admission& admission) {
  if (!answer.reads) return;
  auto bytes = [&](const std::vector<std::string>& names) {
    return bytes_read(task, task.official(), names);
  };
  if (!admission.reads || bytes(*answer.reads) < bytes(*admission.reads))
    admission.reads = answer.reads;
}

}  // namespace

void count_reads(Task& task, const Admission& admission) {
  if (!admission.reads) return;
  for (ShapeCase& shape : task.shapes) {
    const int64_t read = bytes_read(task, shape, *admission.reads);
    int64_t bytes = written_bytes(task, shape).value;
    if (!__builtin_add_overflow(bytes, read, &bytes))
      shape.least_bytes = std::min(shape.least_bytes, Bytes{bytes});
  }
}

int mode_bits(MathMode mode) {
  switch (mode) {
    case MathMode::fp32:
      return 23;
    case MathMode::tf32:
    case MathMode::fp16:
      return 10;
    case MathMode::bf16:
      return 7;
  }
  return 23;
}

int mode_bits(const Task& task, const TensorInfo& output) {
  return mode_bits(accuracy_of(task, output));
}

int result_bits(const Task& task) {
  int bits = 0;
  const bool outputs = !task.with_role(TensorRole::output).empty();
  for (const TensorInfo* out : results_of(task))
    if (is_floating(out->dtype) && (out->role == TensorRole::output || !outputs)) {
      const int stored = -1 - std::ilogb(half_ulp(out->dtype));
      bits = std::max(bits, std::min(mode_bits(task, *out), stored));
    }
  return bits ? bits : mode_bits(task.math_mode);
}

std::vector<LazyAnswer> lazy_answers(const Task& task) {
  using Set = const InputSet&;
  using Other = const InputSet*;
  const std::vector<std::string> nothing;
  std::vector<LazyAnswer> out{
      {.name = "zeros",
       .values = [](Set s, size_t o, Other) { return constant(s, o, 0); },
       .exact_is_fine = false,
       .reads = nothing},
      {.name = "ones",
       .values = [](Set s, size_t o, Other) { return constant(s, o, 1); },
       .exact_is_fine = false,
       .reads = nothing},
      {.name = "the mean everywhere",
       .values = [](Set s, size_t o, Other) -> LazyValues {
         if (s.outputs[o].truth.size() < 4) return std::nullopt;
         return constant(s, o, mean_of(s.outputs[o].truth));
       },
       .exact_is_fine = false,
       .reads = nothing},
      {.name = "the mean of each channel",
       .values = [](Set s, size_t o, Other) { return axis_means(s, o, 1); },
       .exact_is_fine = false,
       .reads = nothing},
      {.name = "the mean of each column",
       .values = [](Set s, size_t o, Other) { return axis_means(s, o, -1); },
       .exact_is_fine = false,
       .reads = nothing},
      {.name = "the mean of each row",
       .values = [](Set s, size_t o, Other) { return row_means(s, o); },
       .exact_is_fine = false,
       .reads = nothing},
      {.name = "the first answer replayed",
       .values = replay,
       .exact_is_fine = false,
       .reads = nothing},
      {.name = "only the first 99%",
       .values = [](Set s, size_t o, Other) { return unfinished(s, o, 0.99); },
       .exact_is_fine = true},
      {.name = "all but the last row",
       .values = [](Set s, size_t o, Other) { return last_row_missing(s, o); },
       .exact_is_fine = true},
      {.name = "all but the last column",
       .values = [](Set s, size_t o, Other) { return last_column_missing(s, o); },
       .exact_is_fine = true},
      {.name = "the halves of rows swapped",
       .values = [](Set s, size_t o, Other) { return halves_swapped(s, o); },
       .exact_is_fine = true},
      {.name = "results without signs",
       .values = [](Set s, size_t o, Other) { return without_signs(s, o); },
       .exact_is_fine = true},
      {.name = "random values of the same moments",
       .values = [](Set s, size_t o, Other) { return same_moments(s, o); },
       .exact_is_fine = true}};
  const bool outputs = !task.with_role(TensorRole::output).empty();
  for (const TensorInfo& t : task.tensors) {
    if (t.role == TensorRole::output) continue;
    std::string n = t.name;
    const std::vector<std::string> itself{n};
    auto initial = [n](Set s, size_t o, Other) { return input_values(s, o, n); };
    if (t.mutated)
      out.push_back({.name = "'" + n + "' left as it was",
                     .values = initial,
                     .exact_is_fine = true,
                     .reads = std::nullopt,
                     .state = n});
    if (t.mutated && !outputs) continue;  // without outputs, the case above already copies it
    out.push_back(
        {.name = "a copy of " + n, .values = initial, .exact_is_fine = false, .reads = itself});
    if (is_floating(t.dtype))
      out.push_back({.name = "a linear map of " + n,
                     .values = [n](Set s, size_t o, Other) { return linear_map(s, o, n); },
                     .exact_is_fine = false,
                     .reads = itself});
  }
  for (auto [bits, name] : {std::pair{10, "tf32"}, std::pair{7, "bf16"}, std::pair{3, "fp8"}})
    if (bits < result_bits(task))
      out.push_back({.name = fmt::format("results of {} precision", name),
                     .values = [b = bits](Set s, size_t o, Other) { return rounded(s, o, b); },
                     .exact_is_fine = true,
                     .coarser = true});
  return out;
}

Admission admit(const Task& task, const std::vector<std::shared_ptr<const InputSet>>& sets,
                const std::vector<std::shared_ptr<const InputSet>>& replayed) {
  Admission out;
  std::set<std::string> families;
  for (const auto& set : sets)
    if (families.insert(set->family).second) out.families.push_back(set->family);
  std::vector<std::string> winners;
  for (const LazyAnswer& answer : lazy_answers(task)) {
    bool formed = false, everywhere = true, exact = true;
    std::set<std::string> passed, missed;  // families
    for (const auto& set : sets) {
      const InputSet* first = nullptr;
      for (const auto& r : replayed)
        if (r->shape == set->shape) first = r.get();
      Trial trial = try_answer(answer, *set, first);
      formed = formed || trial.formed;
      everywhere = everywhere && trial.passes;
      exact = exact && trial.exact;
      (trial.passes ? passed : missed).insert(set->family);
    }
    if (!formed || (answer.exact_is_fine && exact)) continue;
    ++out.lazy_answers_tried;
    if (everywhere && !sets.empty()) {
      winners.push_back(answer.name);
      out.precision_tells = out.precision_tells && !answer.coarser;
      keep_least_reads(task, answer, out);
    }
    for (const std::string& family : out.families)
      if (passed.contains(family) && !missed.contains(family))
        out.passing.push_back(fmt::format("{} passes on '{}'", answer.name, family));
  }
  out.admitted = !sets.empty() && winners.empty();
  if (sets.empty())
    out.remark = "without a test shape, no degenerate solution was judged";
  else if (!winners.empty())
    out.remark =
        "not admitted: these degenerate solutions pass on every input: " + join(winners, ", ") +
        (out.reads ? "; the floor counts only what they read" : "");
  else if (!out.passing.empty())
    out.remark =
        "every degenerate solution that passes on some input distribution fails on another";
  else
    out.remark = "every degenerate solution fails on every input distribution";
  return out;
}

}  // namespace cutegen::eval
