// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/bench_accuracy.h"

#include <fmt/format.h>

#include "engine/suite/bench_summary.h"
#include "engine/suite/row_text.h"

namespace cutegen::engine {

std::vector<AccuracySummary> accuracy_summaries(const std::vector<BenchRow>& rows) {
  std::vector<AccuracySummary> out;
  for (const std::string& kind : baseline_kinds(rows)) {
    AccuracySummary& s = out.emplace_back();
    s.kind = kind;
    for (const BenchRow& row : rows)
      for (const BaselineTime& t : row.baselines.value_or(TaskBaselines{}).times) {
        if (t.kind != kind || !t.known()) continue;
        const BaselineAccuracy& a = t.accuracy;
        ++(!a.passes ? s.not_measured : *a.passes ? s.within : s.outside);
        s.coarser += a.coarser ? 1 : 0;
      }
  }
  return out;
}

std::string measured_accuracy(const BaselineAccuracy& a) {
  if (a.passes) return accuracy_text(a);
  return a.precision.empty() ? "not measured" : "not measured (" + accuracy_text(a) + ")";
}

std::string accuracy_summary_text(const std::vector<BenchRow>& rows) {
  const auto all = accuracy_summaries(rows);
  if (all.empty()) return {};
  std::string out = fmt::format("\n{:<24} {:>6} {:>8} {:>13} {:>8}\n", "accuracy of", "within",
                                "outside", "not measured", "coarser");
  for (const AccuracySummary& s : all)
    out += fmt::format("{:<24} {:>6} {:>8} {:>13} {:>8}\n", one_line(s.kind, 24).substr(0, 24),
                       s.within, s.outside, s.not_measured, s.coarser);
  return out +
         "within, outside: tasks whose baseline is, or is not, within the tolerance for "
         "candidates.\n"
         "coarser: the baseline rounds operands more coarsely than the task's math mode.\n";
}

Json accuracy_summary_json(const std::vector<BenchRow>& rows) {
  Json out = Json::array();
  for (const AccuracySummary& s : accuracy_summaries(rows))
    out.push_back({{"baseline", s.kind},
                   {"within", s.within},
                   {"outside", s.outside},
                   {"not_measured", s.not_measured},
                   {"coarser", s.coarser}});
  return out;
}

}  // namespace cutegen::engine
