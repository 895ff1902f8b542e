// SPDX-License-Identifier: Apache-2.0
// BaselineParts: what a baseline suite needs from outside: a GPU, torch workers, control times and
// the truth of a task. Tests replace it with toys.
//
// Contract: real_baseline_parts() returns the parts that use the GPU of the settings. One thread
// calls `truth`; several threads may call `worker`.
//
// Example: CG_TRY(BaselineGpu gpu, real_baseline_parts(settings).gpu(ctx));
#pragma once

#include "eval/judge/baselines.h"
#include "gpu/spec.h"

namespace cutegen::engine {

struct BaselineSuiteSettings {
  DeviceName device = "cuda:0";
  std::string python;
  bool require_sandbox = false;
  AskedAccuracy asked = {};  // for every task
  std::vector<torch::BaselineWanted> baselines;
  int jobs = 1;
  eval::BaselineLimits limits;
  double minutes = 0;  // 0: no limit
  bool again = false;  // also measure tasks whose times are in the cache
};

struct BaselineGpu {
  GpuSpec spec;
  std::string uuid, driver;
  int64_t memory_bytes = 0;
  int cuda_version = 0;  // the newest CUDA version that the driver supports
};

struct BaselineParts {
  std::function<Result<BaselineGpu>(const Context&)> gpu;
  std::function<Result<std::unique_ptr<torch::TorchWorker>>(const BaselineGpu&)> worker;
  std::function<Result<std::vector<ControlTime>>(const Context&)> controls;
  std::function<Result<TruthMade>(const Context&, const BaselineGpu&, const Task&)> truth;
};

BaselineParts real_baseline_parts(const BaselineSuiteSettings& settings);

}  // namespace cutegen::engine
