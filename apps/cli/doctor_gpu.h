// SPDX-License-Identifier: Apache-2.0
// Doctor's checks of the GPU and of a candidate's environment: driver, NVRTC, sandbox, counters.
//
// Contract: every finding that is not ok names the remedy, as a command if there is one. The checks
// run no candidate; they try the counters with an empty kernel.
//
// Example: GpusSeen gpus; findings.push_back(check_driver(gpus)); check_sandbox(findings);
#pragma once

#include <string>
#include <vector>

#include "base/context.h"
#include "toolchain/toolchain.h"

namespace cutegen::cli {

enum class State { ok, warning, missing };

struct Finding {
  std::string name;
  State state = State::ok;
  std::string detail;
  std::string mend;  // the remedy: a command or another step; empty if ok
};

struct GpusSeen {
  int cuda_version = 0;            // the newest that the driver supports; 0: unknown
  std::vector<std::string> uuids;  // UUIDs of cuda:0, cuda:1, ...
};

Finding check_driver(GpusSeen& gpus);
// `cuda_version`: the newest that the driver supports; 0: unknown.
Finding check_nvrtc(const toolchain::ToolPaths& paths, int cuda_version);
// Checks how much the sandbox protects and, separately, user namespaces.
void check_sandbox(std::vector<Finding>& out);
// Checks ncu, its version, and whether it may read the counters of cuda:0.
Finding check_counters(const Context& ctx, const GpusSeen& gpus);

}  // namespace cutegen::cli
