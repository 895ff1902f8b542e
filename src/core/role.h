// SPDX-License-Identifier: Apache-2.0
// The names in a strategy's request to a proposer. `Role` says who answers: a recipe, the user's
// kernel, or a language model that plays a planner, coder, and so on. `Purpose` says what the
// answer is for, and `Stage` which stage the search is in.
//
// Contract: the names must not change, because journals and prompts contain them. The role `recipe`
// fills in an expert kernel's template without a model, `tester` proposes tests (core/test_case.h),
// and `profiler` explains a profile in words. The value `none` has an empty name.
//
// Example: Ask{Role::coder, {{"purpose", to_string(Purpose::first)}}}
#pragma once

#include <string>

#include "base/names.h"

namespace cutegen {

enum class Role { planner, coder, debugger, judge, recipe, source, tester, profiler };
enum class Purpose { none, plan, first, improve, repair };
enum class Stage { none, structure, detail };

Names<Role> enum_names(Role);
Names<Purpose> enum_names(Purpose);
Names<Stage> enum_names(Stage);
// For an unknown name, parse_role(), parse_purpose() and parse_stage() return a user error.
Result<Role> parse_role(const std::string& name, const std::string& where);
Result<Purpose> parse_purpose(const std::string& name, const std::string& where);
Result<Stage> parse_stage(const std::string& name, const std::string& where);

}  // namespace cutegen
