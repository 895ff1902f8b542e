// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a strategy's questions: who is asked for the next program, and for what.
//
// Contract: the names must not change, because journals and prompts hold them. `recipe` takes an
// expert kernel and asks no model. `tester` proposes tests (core/test_case.h). `profiler` says in
// words what a profile means. A Question without a Purpose or Stage has `none`, whose name is
// empty.
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
// A user error for an unknown name; "" is `none`.
Result<Role> parse_role(const std::string& name, const std::string& where);
Result<Purpose> parse_purpose(const std::string& name, const std::string& where);
Result<Stage> parse_stage(const std::string& name, const std::string& where);

}  // namespace cutegen
