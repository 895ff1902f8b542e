// SPDX-License-Identifier: Apache-2.0
// Finds the Python interpreter and the script of the torch workers, and shortens the last message
// of a worker that died.
//
// Contract: find_interpreter() returns the first interpreter in this list that is set or exists:
// `asked`, $CUTEGEN_PYTHON, the project's venv, python3 on PATH. Only the module src/torch includes
// this header.
//
// Example: CG_TRY(std::string python, find_interpreter(options.python));
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace cutegen::torch {

Result<std::string> find_interpreter(const std::string& asked);
// Returns `asked` or, if that is empty, the installed python/cutegen_worker.
Result<std::filesystem::path> find_worker(const std::filesystem::path& asked);
// Returns the last line of `text` that is not blank, shortened to kQuoted bytes.
std::string last_line(const std::string& text);

// The largest number of bytes that an error quotes from the message of a process.
inline constexpr size_t kQuoted = 400;

inline constexpr const char* kThreadNames = "cutegen-thread-names.so";

}  // namespace cutegen::torch
