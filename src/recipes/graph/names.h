// SPDX-License-Identifier: Apache-2.0
// Names: unique identifiers, which are not C++ keywords, for kernels and plans.
//
// Contract: unique() returns the word itself or, if the word is a keyword or already an identifier,
// the word with a number. short_names() gives every tensor of a task its identifier ("fc.weight" ->
// "fc_weight"). A plan lists the identifiers that differ from their tensor's name under "bind".
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
// Returns the plan's "bind": identifier -> tensor, for all tensors whose identifier differs from
// their name.
Json bindings(const std::map<std::string, std::string>& names);

}  // namespace cutegen::recipes
