// SPDX-License-Identifier: Apache-2.0
// Finds a third-party solution: a Python file, or a folder that has one and no plan.json.
//
// Contract: returns bounded UTF-8 text. A folder with plan.json has no solution; task.py never
// counts as one. An unreadable .py file and a folder with several .py files are errors of the user.
//
// Example: CG_TRY(auto answer, find_foreign("modelnew.py")); if (answer) judge(*answer);
#pragma once

#include <filesystem>
#include <optional>

#include "core/verdict.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {

Result<std::optional<torch::ForeignFile>> find_foreign(const std::filesystem::path& path);

bool is_foreign(const Verdict& verdict);
// "foreign:" and a hash of the file.
std::string foreign_id(const torch::ForeignFile& answer);

}  // namespace cutegen::eval
