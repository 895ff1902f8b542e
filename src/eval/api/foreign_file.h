// SPDX-License-Identifier: Apache-2.0
// Finds a third-party solution: a Python file, or a folder with one Python file and no plan.json.
//
// Contract: find_foreign() returns nullopt for a folder with plan.json, and ignores task.py. The
// returned text is valid UTF-8 of limited size. If a .py file is unreadable, or if a folder has
// several .py files, the result is a user error.
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
// Returns the program_id of a third-party solution: "foreign:" and a hash of the file.
std::string foreign_id(const torch::ForeignFile& answer);

}  // namespace cutegen::eval
