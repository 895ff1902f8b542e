// SPDX-License-Identifier: Apache-2.0
// One shape of a task from JSON, as it stands in the `shapes` of a task.
//
// Contract: the same checks as task_from_json makes of each shape; `where` is put into errors.
//
// Example: CG_TRY(ShapeCase s, shape_case_from_json(reply["shapes"][0], "shapes#/0"));
#pragma once

#include <string>

#include "core/task.h"

namespace cutegen {

[[nodiscard]] Result<ShapeCase> shape_case_from_json(const Json& json, const std::string& where);

}  // namespace cutegen
