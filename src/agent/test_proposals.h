// SPDX-License-Identifier: Apache-2.0
// Reads test cases (core/test_case.h) from the reply of a model in the role `tester`.
//
// Contract: parse_test_cases() accepts any text. A reply must contain one JSON document, {"cases":
// [...]}, in a fenced block or alone. If the JSON document is missing, or if check_test_cases()
// refuses a case, the result is a Reask (a message to the model) with the place and the remedy. If
// a case has no name, parse_test_cases() names it "test 1", "test 2", ...
//
// Example: auto tests = parse_test_cases(text, task); if (!tests) ask_again(tests.error().text);
#pragma once

#include "agent/reply.h"
#include "core/task.h"

namespace cutegen::agent {

tl::expected<std::vector<TestCase>, Reask> parse_test_cases(const std::string& reply,
                                                            const Task& task);

}  // namespace cutegen::agent
