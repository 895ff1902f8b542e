// SPDX-License-Identifier: Apache-2.0
// Finds the launches that an output depends on, and whether blocks that did not run affect it.
//
// Contract: flow_to() follows buffers backwards from the last launch that takes the output as an
// argument. It assumes that a launch reads every buffer it gets. `complete`: every launch before
// the last ran all of its blocks, so their buffers hold what a full run writes. `why_not`: the
// blocks of a launch combine their results (atomics), or the buffers between launches do not keep
// what they write.
//
// Example: Flow f = flow_to("out", task, steps, report, aliased); if (f.why_not.empty()) compare();
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/task.h"
#include "device/device.h"

namespace cutegen::eval {

struct Flow {
  std::string why_not;           // why the evaluator cannot compare the output; empty if it can
  bool complete = true;          // if false, results may come from scratch that no block wrote
  std::vector<size_t> launches;  // indices of the launches on which the output depends
};

Flow flow_to(const std::string& output, const Task& task, const device::PlanSteps& steps,
             const device::RunReport& report,
             const std::function<bool(const std::string&)>& aliased);

}  // namespace cutegen::eval
