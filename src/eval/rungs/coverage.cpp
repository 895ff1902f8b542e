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
    Executed& executed = executed_[{t.module, t.kernel}];
    auto& places = elsewhere_[{sources[t.module], t.kernel}][t.module];
    for (const device::TracedInst& i : t.executed) {
      executed.instructions.insert(i.index);
      executed.opcodes[{i.line, i.column}].insert(i.opcode);
      places.insert({i.line, i.column});
      instructions += i.runs;
    }
  }
  most_instructions_ =
      std::max(most_instructions_, instructions / std::max(1.0, implied_work(shape)));
  if (shape.flops.value <= 0) return;
  const double share = std::min(1.0, arithmetic_of(report) / shape.flops.value);
  least_arithmetic_ = std::min(least_arithmetic_.value_or(1.0), share);
}

bool Coverage::Executed::contains(const device::TracedInst& i) const {
  if (instructions.contains(i.index)) return true;
  auto at = opcodes.find({i.line, i.column});
  return i.line > 0 && at != opcodes.end() && at->second.contains(i.opcode);
}

bool Coverage::covers(size_t module, const std::string& source, const std::string& kernel,
                      const device::TracedInst& i) const {
  auto same = executed_.find({module, kernel});
  if (same != executed_.end() && same->second.contains(i)) return true;
  auto found = elsewhere_.find({source, kernel});
  if (i.line <= 0 || found == elsewhere_.end()) return false;
  for (const auto& [other, places] : found->second)
    if (other != module && places.contains({i.line, i.column})) return true;
  return false;
}

std::optional<Coverage::Gap> Coverage::gap(const device::RunReport& report,
                                           const std::vector<std::string>& sources,
                                           const std::set<size_t>& compared) const {
  double all = 0, open = 0, most = 0;
  Gap gap;
  for (size_t n = 0; n < report.traces.size(); ++n) {
    const device::LaunchTrace& t = report.traces[n];
    const std::string source = t.module < sources.size() ? sources[t.module] : std::string();
    double here = 0;
    int64_t first = -1;
    for (const device::TracedInst& i : t.executed) {
      all += i.runs;
      if (compared.contains(n) || covers(t.module, source, t.kernel, i)) continue;
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
