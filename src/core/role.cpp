// SPDX-License-Identifier: Apache-2.0
#include "core/role.h"

#include "core/codec.h"

namespace cutegen {
namespace {

constexpr codec::Names<Role, 5> kRoles{{{Role::planner, "planner"},
                                        {Role::coder, "coder"},
                                        {Role::debugger, "debugger"},
                                        {Role::judge, "judge"},
                                        {Role::recipe, "recipe"}}};
constexpr codec::Names<Purpose, 5> kPurposes{{{Purpose::none, ""},
                                              {Purpose::plan, "plan"},
                                              {Purpose::first, "first"},
                                              {Purpose::improve, "improve"},
                                              {Purpose::repair, "repair"}}};
constexpr codec::Names<Stage, 3> kStages{
    {{Stage::none, ""}, {Stage::structure, "structure"}, {Stage::detail, "detail"}}};

}  // namespace

const char* to_string(Role role) {
  return codec::name_of(kRoles, role);
}
const char* to_string(Purpose purpose) {
  return codec::name_of(kPurposes, purpose);
}
const char* to_string(Stage stage) {
  return codec::name_of(kStages, stage);
}
Result<Role> parse_role(const std::string& name, const std::string& where) {
  return codec::value_of(kRoles, name, "role", where);
}
Result<Purpose> parse_purpose(const std::string& name, const std::string& where) {
  return codec::value_of(kPurposes, name, "purpose", where);
}
Result<Stage> parse_stage(const std::string& name, const std::string& where) {
  return codec::value_of(kStages, name, "stage", where);
}

}  // namespace cutegen
