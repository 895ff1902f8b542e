// SPDX-License-Identifier: Apache-2.0
// A suite of tasks in KernelBench's layout: DIR/levelN/NUMBER_name.py, or DIR/KernelBench/levelN.
//
// Contract: find_suite lists the requested tasks by level and number. A missing level or number is
// a user error that lists the existing ones. Files are not opened.
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

// "19-32,36" as ranges; `where` names the flag in errors.
Result<std::vector<NumberRange>> parse_numbers(const std::string& text, const std::string& where);
// numbers: the tasks to take from each level; empty: all.
Result<std::vector<SuiteTask>> find_suite(const std::filesystem::path& dir,
                                          const std::vector<NumberRange>& levels,
                                          const std::vector<NumberRange>& numbers);

}  // namespace cutegen::engine
