// SPDX-License-Identifier: Apache-2.0
// TestCase: a test that a model in the role tester proposes: sizes, ranges of input values, and
// edge values.
//
// Contract: the evaluator runs test cases in addition to its own tests. Test cases are untrusted
// data. The function check_test_cases() refuses too many cases, unknown names, sizes that are not
// positive, and ranges that are empty, not finite or outside the input's dtype. An error names the
// place and the remedy. The evaluator skips a case that takes more work than the evaluator's own
// tests, or on which the reference fails.
//
// Example: {"name": "one row", "sizes": {"tokens": 1},
//           "values": {"x": {"low": -4, "high": 4, "edges": [0]}}, "why": "a single block"}
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace cutegen {

struct Task;

// Values are uniform from `low` to `high`, but about one value in sixteen comes from `edges`.
struct ValueRange {
  double low = 0, high = 0;
  std::vector<double> edges;
  bool operator==(const ValueRange&) const = default;
};

struct TestCase {
  std::string name;
  // Values for some constants of the task; all other constants keep their values.
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::map<std::string, ValueRange> values;  // ranges by the name of a floating-point input
  std::string why;
  bool operator==(const TestCase&) const = default;
};

inline constexpr size_t kMostTestCases = 6, kMostEdges = 4;

void fields(Fields& v, ValueRange& range);
void fields(Fields& v, TestCase& test);
// The function sizes_to_test() returns the names of the sizes that a test may set, and
// inputs_to_test() the names of the inputs whose value ranges a test may set.
std::vector<std::string> sizes_to_test(const Task& task);
std::vector<std::string> inputs_to_test(const Task& task);
Result<void> check_test_cases(const std::vector<TestCase>& tests, const Task& task);
// Describes a test: "one row: tokens = 1; x from -4 to 4, also 0; a single block".
std::string describe(const TestCase& test);

}  // namespace cutegen
