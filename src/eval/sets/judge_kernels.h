// SPDX-License-Identifier: Apache-2.0
// The comparison kernels of a GPU judge, for a caller without a toolchain of its own.
//
// Contract: finds NVRTC as the evaluator does, compiles the kernels and loads them. An error names
// what is missing; the judge can then still hold memory.
//
// Example: CG_CHECK(prepare_judge(ctx, *judge, {.python = python, .cuda_version = 13000}));
#pragma once

#include "eval/sets/gpu_judge.h"

namespace cutegen::eval {

struct JudgeKernels {
  std::string python;
  int cuda_version = 0;  // that the driver takes
  bool require_sandbox = false;
};
Result<void> prepare_judge(const Context& ctx, GpuJudge& judge, const JudgeKernels& options);

}  // namespace cutegen::eval
