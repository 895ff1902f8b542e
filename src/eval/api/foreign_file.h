// SPDX-License-Identifier: Apache-2.0
// Where a foreign answer lies: a Python file, or a folder that has one and no plan.
//
// Contract: bounded UTF-8 text. In a folder with plan.json there is none; task.py is never one. A
// .py file that cannot be read, and a folder with several, are the user's error.
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
