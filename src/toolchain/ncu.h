// SPDX-License-Identifier: Apache-2.0
// Finds ncu, the command line of Nsight Compute, and its version.
//
// Contract: searches $CUTEGEN_NCU, PATH, CUDA toolkits, then /opt/nvidia/nsight-compute (newest
// first). Runs the program for its version, in the sandbox and with a time limit. If ncu is missing
// or too old, the error names the remedy.
//
// Example: CG_TRY(NcuTool ncu, find_ncu(ctx)); print(ncu.path, ncu.version);
#pragma once

#include <filesystem>
#include <string>

#include "base/context.h"

namespace cutegen::toolchain {

struct NcuTool {
  std::filesystem::path path;
  std::string version;  // "2025.3.1.0"
};
Result<NcuTool> find_ncu(const Context& ctx);

}  // namespace cutegen::toolchain
