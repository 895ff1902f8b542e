// SPDX-License-Identifier: Apache-2.0
// Finds the tasks of a suite in KernelBench's layout: DIR/levelN/NUMBER_name.py, or
// DIR/KernelBench/levelN/NUMBER_name.py.
//
// Contract: find_suite() returns the requested tasks, sorted by level and number, without opening
// their files. If a level or number does not exist, it returns a user error that lists the existing
// levels or numbers.
//
// Example: CG_TRY(auto numbers, parse_numbers("19-32,36"));
//          CG_TRY(auto tasks, find_suite("KernelBench", {1}, numbers));
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cutegen::engine {

struct SuiteTask {
  int level = 0, number = 0;
  std::string name;  // "19_ReLU"
  std::filesystem::path file;
  std::string key() const;  // "level1_19_ReLU"
};

using NumberRange = std::pair<int, int>;  // first and last

// Parses ranges such as "19-32,36". In errors, `where` names the flag.
Result<std::vector<NumberRange>> parse_numbers(const std::string& text, const std::string& where);
// `numbers` selects the tasks of each level; empty: all tasks of the levels.
Result<std::vector<SuiteTask>> find_suite(const std::filesystem::path& dir,
                                          const std::vector<NumberRange>& levels,
                                          const std::vector<NumberRange>& numbers);

}  // namespace cutegen::engine
