// SPDX-License-Identifier: Apache-2.0
// CudaDevice: a Device on a GPU. It uses the CUDA driver alone, without the runtime.
//
// Contract: as device.h. A process has one context. run() waits for each step before it queues the
// next, so that a fault has a kernel's name. After a fault, or if a kernel does not end, the
// context is broken and the report says `device_lost`. A timed sample begins with a cold L2 (unless
// warm is asked for). A gate holds its launches back until all are queued, so that the sample
// excludes the host's time.
//
// Example: CG_TRY(auto device, cuda::open_cuda_device("cuda:0"));
#pragma once

#include <atomic>
#include <memory>

#include "device/cuda/buffers.h"
#include "device/cuda/gpu_info.h"
#include "device/cuda/modules.h"
#include "device/cuda/scrub.h"

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
  using Steps = PlanSteps;
  struct Timed;  // a program with its timed samples
  // Reports a failed status as the kernel's fault, or returns an error that no kernel can cause.
  Result<void> note_fault(Status status, const std::string& kernel, RunReport& report);
  Result<Status> queue(const std::variant<Launch, Fill>& step, bool first);
  Result<Status> queue_launch(const Launch& step, bool first);
  Result<Status> queue_fill(const Fill& step);
  // Waits until the stream is empty. Returns its status, or kNotReady after the limit.
  Result<Status> wait(const Context& ctx, Nanoseconds limit);
  Result<void> run_once(const Context& ctx, const Steps& steps, Nanoseconds limit,
                        RunReport& report);
  Result<void> take_pairs(const Context& ctx, const TimeRequest& request, Timed& own, Timed& other,
                          RunReport& report);
  Result<void> sample(const Context& ctx, const TimeRequest& request, Timed& timed,
                      RunReport& report);
  Result<double> by_events(const Context& ctx, const TimeRequest& request, Timed& timed,
                           RunReport& report);
  Result<double> by_the_clock(const Context& ctx, const TimeRequest& request, Timed& timed,
                              RunReport& report);
  Result<Status> queue_all(const Timed& timed, bool in_graph);
  Result<void> capture(Timed& timed);
  Result<void> set_scene(const TimeRequest& request, const Timed& timed);
  Result<void> cool_l2();
  Result<void> soil_shared();
  Result<void> shut_gate();
  void open_gate() { std::atomic_ref(pinned_->gate).store(gates_); }
  Result<void> launch_one(Handle kernel, void** arguments);  // one thread
  Result<void> prepare_timing();

  const Driver& driver_;
  Found gpu_;
  Watch watch_;
  Buffers buffers_;
  Modules modules_;
  Scrubber scrubber_;
  Handle stream_ = nullptr, begin_ = nullptr, end_ = nullptr;
  struct Pinned {
    uint32_t gate;        // the gate kernel waits for its value
    uint64_t cycles, ns;  // of an SM, from the tick kernel
  };
  Pinned* pinned_ = nullptr;
  Address pinned_address_ = 0, flush_ = 0;
  size_t flush_bytes_ = 0;
  uint32_t gates_ = 0;
  Handle own_module_ = nullptr, gate_kernel_ = nullptr, tick_ = nullptr, soil_ = nullptr;
  bool lost_ = false;
};

Result<std::unique_ptr<Device>> open_cuda_device(const DeviceName& name);

}  // namespace cutegen::device::cuda
