// SPDX-License-Identifier: Apache-2.0
// Finds the launches on which an output depends. Decides whether thread blocks that the simulator
// did not run could affect this output.
//
// Contract: flow_to() begins at the last launch that has the output as an argument and follows
// buffers backwards. It assumes that a launch reads all of its buffer arguments. The output cannot
// be compared if blocks of a launch combine their results (atomics), or if buffers between launches
// do not keep the values that blocks write; `why_not` then gives the reason.
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
  std::string why_not;           // why the output cannot be compared; else empty
  bool complete = true;          // all launches before the last one ran all of their blocks
  std::vector<size_t> launches;  // indices of the launches on which the output depends
};

Flow flow_to(const std::string& output, const Task& task, const device::PlanSteps& steps,
             const device::RunReport& report,
             const std::function<bool(const std::string&)>& aliased);

}  // namespace cutegen::eval
