// SPDX-License-Identifier: Apache-2.0
// Where this machine keeps ncu, the command line of Nsight Compute, and which version it is.
//
// Contract: looks at $CUTEGEN_NCU, PATH, CUDA toolkits, then /opt/nvidia/nsight-compute, the newest
// first; asks the program for its version, in the sandbox and within a time. What is missing or too
// old is an error with its remedy.
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
[[nodiscard]] Result<NcuTool> find_ncu(const Context& ctx);

}  // namespace cutegen::toolchain
