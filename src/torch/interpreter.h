// SPDX-License-Identifier: Apache-2.0
// Which Python runs the workers, where their script lies, and what a dead one said last.
//
// Contract: the interpreter is the one asked for, else $CUTEGEN_PYTHON, the project's venv, python3
// on the PATH. Private to torch.
//
// Example: CG_TRY(std::string python, find_interpreter(options.python));
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace cutegen {

[[nodiscard]] Result<std::string> find_interpreter(const std::string& asked);
// The shipped python/cutegen_worker, unless another is asked for.
[[nodiscard]] Result<std::filesystem::path> find_worker(const std::filesystem::path& asked);
// The last line that says something, bounded.
[[nodiscard]] std::string last_line(const std::string& text);
[[nodiscard]] std::string hex(const std::string& bytes);

}  // namespace cutegen
