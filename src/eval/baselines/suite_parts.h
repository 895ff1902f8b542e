// SPDX-License-Identifier: Apache-2.0
// SuiteParts: the functions on which measure_suite() depends. They open the GPU, start torch
// workers, time the control kernels, and compute the truth (the result in float64) of a task. Tests
// replace these functions by fakes.
//
// Contract: real_suite_parts() returns the functions for the device of `options`. Only one thread
// calls `truth`; several threads may call `worker`.
//
// Example: CG_TRY(SuiteGpu gpu, real_suite_parts(options, request).gpu(ctx));
#pragma once

#include <functional>
#include <memory>

#include "eval/api/client.h"
#include "gpu/spec.h"
#include "torch/worker.h"

namespace cutegen::eval {

struct SuiteGpu {
  GpuSpec spec;
  std::string uuid, driver;
  int64_t memory_bytes = 0;
  int cuda_version = 0;  // newest CUDA version that the driver supports
};

struct SuiteParts {
  std::function<Result<SuiteGpu>(const Context&)> gpu;
  std::function<Result<std::unique_ptr<torch::TorchWorker>>(const SuiteGpu&)> worker;
  std::function<Result<std::vector<ControlTime>>(const Context&)> controls;
  // Limits how long cutegen times the control kernels on a busy GPU. The computation of truths
  // begins only after these kernels.
  Nanoseconds controls_limit = std::chrono::seconds(60);
  std::function<Result<TruthMade>(const Context&, const SuiteGpu&, const Task&)> truth;
};

SuiteParts real_suite_parts(const EvaluatorOptions& options, const SuiteRequest& request);

}  // namespace cutegen::eval
