// SPDX-License-Identifier: Apache-2.0
#include "core/role.h"

namespace cutegen {

Names<Role> enum_names(Role) {
  static constexpr Name<Role> names[] = {
      {Role::planner, "planner"}, {Role::coder, "coder"},      {Role::debugger, "debugger"},
      {Role::judge, "judge"},     {Role::recipe, "recipe"},    {Role::source, "source"},
      {Role::tester, "tester"},   {Role::profiler, "profiler"}};
  return names;
}

Names<Purpose> enum_names(Purpose) {
  static constexpr Name<Purpose> names[] = {{Purpose::none, ""},
                                            {Purpose::plan, "plan"},
                                            {Purpose::first, "first"},
                                            {Purpose::improve, "improve"},
                                            {Purpose::repair, "repair"}};
  return names;
}

Names<Stage> enum_names(Stage) {
  static constexpr Name<Stage> names[] = {
      {Stage::none, ""}, {Stage::structure, "structure"}, {Stage::detail, "detail"}};
  return names;
}

Result<Role> parse_role(const std::string& name, const std::string& where) {
  return from_name<Role>(name, "role", where);
}
Result<Purpose> parse_purpose(const std::string& name, const std::string& where) {
  return from_name<Purpose>(name, "purpose", where);
}
Result<Stage> parse_stage(const std::string& name, const std::string& where) {
  return from_name<Stage>(name, "stage", where);
}

}  // namespace cutegen
