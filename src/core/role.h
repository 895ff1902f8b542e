// SPDX-License-Identifier: Apache-2.0
// The names in a strategy's requests to a proposer: which role shall answer (a model in that role,
// or a recipe), and for which purpose.
//
// Contract: the names must not change, because journals and prompts contain them. `recipe` fills an
// expert kernel's template without a model. `tester` proposes tests (core/test_case.h). `profiler`
// explains a profile in words. The name of `none` is the empty text.
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
// The parsers return a user error for an unknown name.
Result<Role> parse_role(const std::string& name, const std::string& where);
Result<Purpose> parse_purpose(const std::string& name, const std::string& where);
Result<Stage> parse_stage(const std::string& name, const std::string& where);

}  // namespace cutegen
