// SPDX-License-Identifier: Apache-2.0
// Finds the Python that runs the workers and their script, and shortens the last message of a
// worker that died.
//
// Contract: the interpreter is `asked`, else $CUTEGEN_PYTHON, the project's venv, or python3 on
// PATH. Private to torch.
//
// Example: CG_TRY(std::string python, find_interpreter(options.python));
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace cutegen::torch {

Result<std::string> find_interpreter(const std::string& asked);
// `asked`, else the shipped python/cutegen_worker.
Result<std::filesystem::path> find_worker(const std::filesystem::path& asked);
// The last line that is not blank, with limited length.
std::string last_line(const std::string& text);

inline constexpr size_t kQuoted = 400;  // the most bytes of a process's message that an error shows

inline constexpr const char* kThreadNames = "cutegen-thread-names.so";

}  // namespace cutegen::torch
