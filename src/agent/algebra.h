// SPDX-License-Identifier: Apache-2.0
// Finds work in a task's graph that algebra can remove.
//
// Contract: returns one sentence per finding, in the order of the graph. The sentences use the
// names that the nodes have in the prompt's traced graph.
//
// Example: for (const std::string& line : removable_work(task)) prompt += "- " + line + "\n";
#pragma once

#include <string>
#include <vector>

#include "core/task.h"

namespace cutegen::agent {

std::vector<std::string> removable_work(const Task& task);

}  // namespace cutegen::agent
