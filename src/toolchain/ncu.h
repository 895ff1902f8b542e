// SPDX-License-Identifier: Apache-2.0
// Finds ncu, the command-line program of Nsight Compute, and its version.
//
// Contract: find_ncu() searches $CUTEGEN_NCU, PATH, CUDA toolkits, and then
// /opt/nvidia/nsight-compute (newest first). It runs ncu in the sandbox, with a time limit, to get
// the version of ncu. If ncu is missing or too old, the error of find_ncu() names the remedy.
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
