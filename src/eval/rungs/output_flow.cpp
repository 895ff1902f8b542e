// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/output_flow.h"

#include <algorithm>
#include <optional>
#include <set>

namespace cutegen::eval {
namespace {

using Buffers = std::set<std::string>;

bool is_read_only(const Task& task, const std::string& name) {
  const TensorInfo* info = task.find(name);
  return info && !is_result(*info);
}

Buffers written_by(const Launch& launch, const Task& task) {
  Buffers out;
  for (const LaunchArg& arg : launch.args)
    if (!arg.buffer.empty() && !is_read_only(task, arg.buffer)) out.insert(arg.buffer);
  return out;
}

bool meet(const Buffers& a, const Buffers& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

// One launch of the plan and the trace of its run.
struct Ran {
  const Launch* launch;
  const device::LaunchTrace* trace;
  size_t number;  // index among the launches
  bool whole() const { return trace->ctas_run == trace->ctas_total; }
};

}  // namespace

Flow flow_to(const std::string& output, const Task& task, const device::PlanSteps& steps,
             const device::RunReport& report,
             const std::function<bool(const std::string&)>& aliased) {
  Flow flow;
  std::vector<Ran> all;
  bool filled = false;
  for (const auto& step : steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      if (all.size() == report.traces.size()) break;
      all.push_back({.launch = launch, .trace = &report.traces[all.size()], .number = all.size()});
    } else {
      filled = filled || std::get<Fill>(step).buffer == output;
    }
  }
  auto last = std::find_if(all.rbegin(), all.rend(), [&](const Ran& r) {
    return written_by(*r.launch, task).contains(output);
  });
  if (last == all.rend())
    return {.why_not = "no launch writes " + output, .complete = true, .launches = {}};
  Buffers needed;
  for (auto at = last; at != all.rend(); ++at) {
    const Buffers written = written_by(*at->launch, task);
    if (at != last && !meet(written, needed)) continue;
    needed.insert(written.begin(), written.end());
    flow.launches.push_back(at->number);
    if (at->whole()) continue;
    if (at->trace->atomics)
      flow.why_not = "blocks of " + at->launch->kernel + " work together by atomics";
    if (at != last) flow.complete = false;
    if (at != last && written.contains(output))
      flow.why_not = "several launches write " + output + ", and not all of their blocks ran";
  }
  const bool sampled = !flow.complete || !last->whole();
  if (filled && sampled) flow.why_not = output + " is filled before the launches";
  for (const std::string& name : needed)
    if (aliased(name) && (flow.launches.size() > 1 || !last->whole()))
      flow.why_not = "the scratch buffer " + name + " is too large to be kept";
  return flow;
}

}  // namespace cutegen::eval
