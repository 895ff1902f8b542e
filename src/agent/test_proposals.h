// SPDX-License-Identifier: Apache-2.0
// Reads a tester's reply as test cases (core/test_case.h).
//
// Contract: any text is valid input. The reply holds one JSON document, {"cases": [...]}, in a
// fenced block or alone. If the document is missing, or check_test_cases() refuses a case, the
// result is a Reask with the place and the remedy. A case without a name gets "test 1", "test 2",
// ...
//
// Example: auto tests = parse_test_cases(text, task); if (!tests) ask_again(tests.error().text);
#pragma once

#include "agent/reply.h"
#include "core/task.h"

namespace cutegen::agent {

tl::expected<std::vector<TestCase>, Reask> parse_test_cases(const std::string& reply,
                                                            const Task& task);

}  // namespace cutegen::agent
