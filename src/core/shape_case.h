// SPDX-License-Identifier: Apache-2.0
// Parses one shape of a task from JSON, in the form of a task's `shapes`.
//
// Contract: the same checks as task_from_json makes for each shape; errors mention `where`.
//
// Example: CG_TRY(ShapeCase s, shape_case_from_json(reply["shapes"][0], "shapes#/0"));
#pragma once

#include <string>

#include "core/task.h"

namespace cutegen {

Result<ShapeCase> shape_case_from_json(const Json& json, const std::string& where);

}  // namespace cutegen
