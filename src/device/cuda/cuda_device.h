// SPDX-License-Identifier: Apache-2.0
// CudaDevice: runs programs on a GPU. CudaDevice uses the CUDA driver API without the CUDA runtime.
//
// Contract: CudaDevice obeys the contract of `Device` (device.h). A process has one CUDA context.
// The function run() waits for each step before it queues the next step, so that the report can
// name the faulty kernel. If a kernel faults or does not end, the CUDA context is broken and the
// report sets `device_lost`. Each timed run begins with a cold L2, unless the timing mode is warm.
// A gate kernel delays the launches until the host has queued all launches, so that the time
// excludes the host's work.
//
// Example: CG_TRY(auto device, cuda::open_cuda_device("cuda:0"));
#pragma once

#include <memory>

#include "device/cuda/buffers.h"
#include "device/cuda/gpu_info.h"
#include "device/cuda/modules.h"
#include "device/cuda/own_kernels.h"
#include "device/cuda/scrub.h"
#include "device/cuda/step_queue.h"

namespace cutegen::device::cuda {

class CudaDevice final : public Device {
 public:
  CudaDevice(const Driver& driver, Found gpu, Handle context);
  ~CudaDevice() override;
  Result<void> prepare();

  DeviceFacts facts() const override { return gpu_.facts; }
  DeviceIdentity identity() const override { return gpu_.identity; }
  using Device::load;
  Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx,
                                        const std::vector<std::string>& code) override;
  Result<void> bind(const std::vector<BufferBinding>& buffers) override;
  Result<RunReport> run(const Context& ctx, const PlanSteps& steps,
                        const RunSettings& settings) override;
  Result<RunReport> time(const Context& ctx, const TimeRequest& request) override;
  Result<void> read(const std::string& buffer, int64_t offset, std::span<std::byte> out) override;

 private:
  Result<void> run_once(const Context& ctx, const PlanSteps& steps, Nanoseconds limit,
                        RunReport& report);
  Result<void> copy_back(RunReport& report);

  const Driver& driver_;
  Found gpu_;
  Watch watch_;
  Buffers buffers_;
  Modules modules_;
  Scrubber scrubber_;
  StepQueue queue_;
  OwnKernels own_;
};

Result<std::unique_ptr<Device>> open_cuda_device(const DeviceName& name);

}  // namespace cutegen::device::cuda
