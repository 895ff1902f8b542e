// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "tensor/pattern.h"

namespace cutegen::eval {

namespace {

// Every element is within its tolerance, but the output's RMS error or bias is too large.
void describe_whole(const Judgement& j, Mismatch& m) {
  const AggregateLimits& l = j.limits;
  const bool rms = j.rms_is_wrong();
  m.gate = rms ? Gate::rms : Gate::bias;
  m.worst_ratio = rms ? j.rms / l.rms : std::abs(j.bias) / l.bias;
  m.pattern =
      rms ? fmt::format(
                "the root mean square of its errors is {:.3g} times the accepted one "
                "({:.3g} times the native reference's)",
                m.worst_ratio, j.rms / std::max(l.native_rms, 1e-300))
          : fmt::format("its errors have a bias: {:.3g} times the accepted one, {} the truth",
                        m.worst_ratio, j.bias > 0 ? "larger than" : "smaller than");
}

}  // namespace

Mismatch describe_mismatch(const Judgement& judgement, const OutputSpec& output,
                           const std::string& shape, const std::string& family) {
  Mismatch m;
  m.shape = shape;
  m.family = family;
  m.output = output.name;
  m.elements = judgement.elements;
  m.wrong = judgement.wrong;
  m.nan = judgement.nan;
  m.unwritten = judgement.unwritten;
  m.first = first_wrong(judgement, output.shape, 5);
  m.pattern = describe_pattern(judgement, output.shape);
  m.worst_ratio = judgement.worst_ratio;
  if (judgement.wrong == 0) describe_whole(judgement, m);
  return m;
}

std::string text_of(const Mismatch& m) {
  if (m.gate != Gate::element)
    return fmt::format("{}: not accurate enough as a whole on shape {}, inputs '{}': {}", m.output,
                       m.shape, m.family, m.pattern);
  return fmt::format("{}: {} of {} elements wrong ({:.3g}%) on shape {}, inputs '{}': {}", m.output,
                     m.wrong, m.elements, 100.0 * double(m.wrong) / double(m.elements), m.shape,
                     m.family, m.pattern);
}

std::string details_of(const Mismatch& m) {
  if (m.gate != Gate::element)
    return text_of(m) +
           "\n"
           "Each single element is within its tolerance. The cause of such an error is lower "
           "precision, a sum that truncates, or a constant that is slightly wrong.";
  std::string out = text_of(m) + "\nfirst wrong at";
  for (const auto& at : m.first) out += fmt::format(" [{}]", fmt::join(at, ", "));
  if (m.nan) out += fmt::format("\nNaN: {} of the wrong elements", m.nan);
  if (m.unwritten) out += fmt::format("\nnever written: {} of the wrong elements", m.unwritten);
  if (m.worst_ratio > 0)
    out += fmt::format("\nthe worst error is {:.3g} times the accepted one", m.worst_ratio);
  return out;
}

std::string bottleneck_text(const std::vector<KernelProfile>& kernels, double floor_ns) {
  auto slowest = std::max_element(kernels.begin(), kernels.end(),
                                  [](auto& a, auto& b) { return a.time_ns < b.time_ns; });
  if (slowest == kernels.end()) return {};
  double total = 0;
  for (const KernelProfile& k : kernels) total += k.time_ns;
  std::string out = slowest->bound_by.empty()
                        ? fmt::format("{} takes {}", slowest->kernel, human_ns(slowest->time_ns))
                        : fmt::format("{} is bound by {} ({}", slowest->kernel, slowest->bound_by,
                                      human_ns(slowest->time_ns));
  if (!slowest->bound_by.empty())
    out += kernels.size() > 1 ? fmt::format(", {:.0f}% of the time)",
                                            100 * slowest->time_ns / std::max(total, 1.0))
                              : ")";
  if (!slowest->diagnosis.summary.empty()) out += "; " + slowest->diagnosis.summary;
  if (floor_ns > 0)
    out += fmt::format("; {:.2f}x the floor of {}", total / floor_ns, human_ns(floor_ns));
  return out;
}

}  // namespace cutegen::eval
