// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/coverage.h"

#include <algorithm>

namespace cutegen::eval {

double implied_work(const ShapeCase& shape) {
  double elements = 0;
  for (const auto& [name, dims] : shape.tensors)
    if (auto count = element_count(dims)) elements += double(*count);
  return shape.flops.value / 64 + elements / 32;
}

double arithmetic_of(const device::RunReport& report) {
  double flops = 0;
  for (const device::LaunchTrace& t : report.traces) flops += t.flops;
  return flops;
}

std::vector<std::string> sources_of(const Prepared& prepared) {
  std::vector<std::string> out;
  for (const KernelImage& image : prepared.images()) out.push_back(image.build.source);
  return out;
}

void Coverage::add(const device::RunReport& report, const std::vector<std::string>& sources,
                   const ShapeCase& shape) {
  double instructions = 0;
  for (const device::LaunchTrace& t : report.traces) {
    if (t.module >= sources.size()) continue;
    auto& executed = executed_[{t.module, t.kernel}];
    auto& lines = lines_[{sources[t.module], t.kernel}];
    for (const device::TracedInst& i : t.executed) {
      executed.insert(i.index);
      lines.insert(i.line);
      instructions += i.runs;
    }
  }
  most_instructions_ =
      std::max(most_instructions_, instructions / std::max(1.0, implied_work(shape)));
  if (shape.flops.value <= 0) return;
  const double share = std::min(1.0, arithmetic_of(report) / shape.flops.value);
  least_arithmetic_ = std::min(least_arithmetic_.value_or(1.0), share);
}

std::optional<Coverage::Gap> Coverage::gap(const device::RunReport& report,
                                           const std::vector<std::string>& sources,
                                           const std::set<size_t>& compared) const {
  double all = 0, open = 0, most = 0;
  Gap gap;
  for (size_t n = 0; n < report.traces.size(); ++n) {
    const device::LaunchTrace& t = report.traces[n];
    auto same = executed_.find({t.module, t.kernel});
    const std::string source = t.module < sources.size() ? sources[t.module] : std::string();
    auto lines = lines_.find({source, t.kernel});
    double here = 0;
    int64_t first = -1;
    for (const device::TracedInst& i : t.executed) {
      all += i.runs;
      const bool instruction = same != executed_.end() && same->second.contains(i.index);
      const bool line = i.line > 0 && lines != lines_.end() && lines->second.contains(i.line);
      const bool known = instruction || line;
      if (known || compared.contains(n)) continue;
      here += i.runs;
      if (first < 0) first = i.line;
    }
    open += here;
    if (here <= most) continue;
    most = here;
    gap.kernel = t.kernel, gap.line = first;
  }
  if (open <= 0 || all <= 0) return std::nullopt;
  gap.share = open / all;
  return gap;
}

}  // namespace cutegen::eval
