// SPDX-License-Identifier: Apache-2.0
// Finds the launches on which an output depends, and decides whether thread blocks that the
// simulator did not run could affect this output.
//
// Contract: flow_to() begins at the last launch that has the output as an argument and follows
// buffers backwards. flow_to() assumes that a launch reads all of its buffer arguments.
// Flow::why_not gives the reason if the output cannot be compared, for example because blocks
// combine their results by atomics, or because a scratch buffer does not keep the values that
// blocks write.
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
  std::string why_not;           // why the output cannot be compared; empty if it can
  bool complete = true;          // all `launches` except the last launch ran all blocks
  std::vector<size_t> launches;  // indices of the launches on which the output depends
};

Flow flow_to(const std::string& output, const Task& task, const device::PlanSteps& steps,
             const device::RunReport& report,
             const std::function<bool(const std::string&)>& aliased);

}  // namespace cutegen::eval
