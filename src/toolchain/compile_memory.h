// SPDX-License-Identifier: Apache-2.0
// Reads the setting --compile-memory, which limits the memory for parsed programs. Compile servers
// keep parsed programs so that other programs with the same beginning compile faster
// (warm_parents.h).
//
// Contract: compile_memory() reads "6G", "512M" or a number of bytes. With "0", compile servers
// keep no parsed programs. Empty text means a quarter of the machine's memory, but at most 8 GiB. A
// size below 512 MiB counts as 0, because no parsed program fits in less. If a command starts
// several evaluators, grant_compile_memory() divides the memory equally among the evaluators and
// sets an environment variable, which they inherit. In an evaluator, granted_compile_memory()
// returns the variable's value, or 0 if the variable is not set.
//
// Example: CG_TRY(int64_t bytes, compile_memory("4G"));
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cutegen::toolchain {

Result<int64_t> compile_memory(const std::string& text);
Result<void> grant_compile_memory(const std::string& text, int evaluators);
int64_t granted_compile_memory();

}  // namespace cutegen::toolchain
