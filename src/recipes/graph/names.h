// SPDX-License-Identifier: Apache-2.0
// Names: identifiers for kernels and plans, unique and not keywords.
//
// Contract: unique() returns the word itself or, if it is taken, the word with a number.
// short_names gives every tensor of a task its identifier ("fc.weight" -> "fc_weight"); a plan
// binds those that differ from the tensor's name.
//
// Example: Names names; names.unique("float") == "float_1"
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/task.h"

namespace cutegen::recipes {

class Names {
 public:
  std::string unique(const std::string& word);

 private:
  std::set<std::string> taken_;
};

std::map<std::string, std::string> short_names(const Task& task);
// The plan's "bind": identifier -> tensor, where they differ.
Json bindings(const std::map<std::string, std::string>& names);

}  // namespace cutegen::recipes
