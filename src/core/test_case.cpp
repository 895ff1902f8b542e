// SPDX-License-Identifier: Apache-2.0
#include "core/test_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "core/task.h"
#include "tensor/half.h"

namespace cutegen {
namespace {

constexpr size_t kMostTestName = 40, kMostTestReason = 200;
constexpr size_t kMostTestSizes = 16, kMostTestValues = 32;
constexpr int64_t kLargestTestSize = int64_t{1} << 31;

bool contains(const std::vector<std::string>& all, const std::string& name) {
  return std::ranges::find(all, name) != all.end();
}

std::string some_of(const std::vector<std::string>& all) {
  return all.empty() ? std::string("none can be chosen") : "one of " + join(all, ", ");
}

Result<void> check_test_range(const std::string& input, const ValueRange& range, DType dtype,
                              const std::string& where) {
  const double most = largest_finite(dtype);
  std::vector<double> all{range.low, range.high};
  all.insert(all.end(), range.edges.begin(), range.edges.end());
  for (double value : all)
    if (!std::isfinite(value) || std::abs(value) > most)
      return user_error(
          fmt::format("{:.6g} is outside the range of '{}' ({})", value, input, to_string(dtype)),
          where, fmt::format("stay within {:.6g} in magnitude", most));
  if (range.low > range.high)
    return user_error(fmt::format("the range of '{}' is empty: low {:.6g}, high {:.6g}", input,
                                  range.low, range.high),
                      where, "give low <= high");
  return {};
}

Result<void> check_test_case(const TestCase& test, const Task& task, const std::string& where) {
  if (test.sizes.empty() && test.values.empty())
    return user_error("a test has neither sizes nor values", where, "give one of them");
  const std::vector<std::string> sizes = sizes_to_test(task), inputs = inputs_to_test(task);
  for (const auto& [name, value] : test.sizes) {
    const std::string at = fmt::format("{}/sizes/{}", where, name);
    if (!contains(sizes, name))
      return user_error("the task has no size '" + name + "' that varies", at, some_of(sizes));
    if (value < 1 || value > kLargestTestSize)
      return user_error(
          fmt::format("the size {} of '{}' is not from 1 to {}", value, name, kLargestTestSize), at,
          "give a size that the task may have");
  }
  for (const auto& [name, range] : test.values) {
    const std::string at = fmt::format("{}/values/{}", where, name);
    if (!contains(inputs, name))
      return user_error("the task has no floating input '" + name + "'", at, some_of(inputs));
    CG_CHECK(check_test_range(name, range, task.find(name)->dtype, at));
  }
  return {};
}

}  // namespace

void fields(Fields& v, ValueRange& r) {
  v("low", r.low);
  v("high", r.high);
  v("edges", r.edges, field::if_set + field::list(kMostEdges));
}

void fields(Fields& v, TestCase& t) {
  v("name", t.name, field::may_lack + field::shown(kMostTestName));
  v("sizes", t.sizes,
    field::if_set + field::shown(kMostTestName) + field::most_keys(kMostTestSizes));
  v("values", t.values,
    field::if_set + field::shown(kMostTestName) + field::most_keys(kMostTestValues));
  v("why", t.why, field::if_set + field::shown(kMostTestReason));
}

std::vector<std::string> sizes_to_test(const Task& task) {
  std::set<std::string> names;
  for (const ShapeCase& shape : task.shapes)
    for (const auto& [name, value] : shape.constants) names.insert(name);
  return {names.begin(), names.end()};
}

std::vector<std::string> inputs_to_test(const Task& task) {
  std::vector<std::string> out;
  for (const TensorInfo* tensor : task.with_role(TensorRole::input))
    if (is_floating(tensor->dtype)) out.push_back(tensor->name);
  return out;
}

Result<void> check_test_cases(const std::vector<TestCase>& tests, const Task& task) {
  if (tests.empty() || tests.size() > kMostTestCases)
    return user_error(fmt::format("{} tests", tests.size()), "cases",
                      fmt::format("give 1 to {}", kMostTestCases));
  std::set<std::string> names;
  for (size_t i = 0; i < tests.size(); ++i) {
    const std::string where = "cases/" + std::to_string(i);
    if (trim(tests[i].name).empty())
      return user_error("a test has no name", where + "/name", "name it in a few words");
    if (!names.insert(tests[i].name).second)
      return user_error("two tests have the name '" + tests[i].name + "'", where + "/name",
                        "rename one");
    CG_CHECK(check_test_case(tests[i], task, where));
  }
  return {};
}

std::string describe(const TestCase& test) {
  std::vector<std::string> parts;
  parts.reserve(test.sizes.size() + test.values.size());
  for (const auto& [name, value] : test.sizes) parts.push_back(fmt::format("{} = {}", name, value));
  for (const auto& [name, range] : test.values) {
    std::string text = fmt::format("{} from {:.6g} to {:.6g}", name, range.low, range.high);
    for (size_t i = 0; i < range.edges.size(); ++i)
      text += fmt::format("{} {:.6g}", i ? "," : ", also", range.edges[i]);
    parts.push_back(std::move(text));
  }
  if (!test.why.empty()) parts.push_back(test.why);
  return test.name + ": " + join(parts, "; ");
}

}  // namespace cutegen
