// SPDX-License-Identifier: Apache-2.0
// Prepares a GpuJudge's comparison kernels for a caller that has no toolchain of its own.
//
// Contract: finds NVRTC as the evaluator does, then compiles and loads the kernels. An error names
// what is missing. After an error, the judge can still hold memory.
//
// Example: CG_CHECK(prepare_judge(ctx, *judge, {.python = python, .cuda_version = 13000}));
#pragma once

#include "eval/sets/gpu_judge.h"

namespace cutegen::eval {

struct JudgeKernels {
  std::string python;
  int cuda_version = 0;  // the driver's
  bool require_sandbox = false;
};
Result<void> prepare_judge(const Context& ctx, GpuJudge& judge, const JudgeKernels& options);

}  // namespace cutegen::eval
