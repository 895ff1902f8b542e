// SPDX-License-Identifier: Apache-2.0
// Finds work in a task's graph that algebra can remove.
//
// Contract: removable_work() returns one sentence for each part of the graph that can be
// simplified, in the order of the graph. Each sentence uses the node names that the prompt to the
// language model shows.
//
// Example: for (const std::string& line : removable_work(task)) prompt += "- " + line + "\n";
#pragma once

#include <string>
#include <vector>

#include "core/task.h"

namespace cutegen::agent {

std::vector<std::string> removable_work(const Task& task);

}  // namespace cutegen::agent
