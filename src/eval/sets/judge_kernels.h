// SPDX-License-Identifier: Apache-2.0
// Compiles and loads a GpuJudge's comparison kernels, for callers without a toolchain of their own.
//
// Contract: prepare_judge() finds NVRTC in the same places as the evaluator. An error names the
// missing component. After an error, the GpuJudge can still allocate memory, but not compare
// outputs.
//
// Example: CG_CHECK(prepare_judge(ctx, *judge, {.python = python, .cuda_version = 13000}));
#pragma once

#include "eval/sets/gpu_judge.h"

namespace cutegen::eval {

struct JudgeKernels {
  std::string python;
  int cuda_version = 0;  // newest CUDA version that the driver supports, such as 13000
  bool require_sandbox = false;
};
Result<void> prepare_judge(const Context& ctx, GpuJudge& judge, const JudgeKernels& options);

}  // namespace cutegen::eval
