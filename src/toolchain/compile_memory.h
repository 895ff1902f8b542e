// SPDX-License-Identifier: Apache-2.0
// The setting --compile-memory: the memory in which the compile servers may keep parsed programs,
// so that programs with the same beginning compile faster (warm_parents.h).
//
// Contract: "6G", "512M" or a number of bytes. "0" keeps no program. Empty means a quarter of the
// machine's memory, at most 8 GiB. Less than 512 MiB cannot hold a program and counts as 0. A
// command that starts several evaluators divides the memory equally, and passes each its share in
// an environment variable. An evaluator without a share keeps no program.
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
