// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <fmt/format.h>

namespace cutegen::device::cuda {
namespace {

constexpr int kPersistingL2 = 6;  // CU_LIMIT_PERSISTING_L2_CACHE_SIZE

}  // namespace

CudaDevice::CudaDevice(const Driver& driver, Found gpu, Handle)
    : driver_(driver),
      gpu_(std::move(gpu)),
      watch_(gpu_.identity.uuid),
      buffers_(driver, gpu_.device),
      modules_(driver),
      scrubber_(driver, gpu_.facts.sms),
      queue_(driver, buffers_, modules_),
      own_(driver) {
  gpu_.identity.driver = watch_.driver_version();
  if (gpu_.identity.driver.empty())
    gpu_.identity.driver = fmt::format("of CUDA {}.{}", gpu_.identity.cuda_version / 1000,
                                       gpu_.identity.cuda_version % 1000 / 10);
}

// Does not clean up a broken context, because the end of the process frees everything.
CudaDevice::~CudaDevice() {
  if (queue_.lost()) return;
  buffers_.clear();
  modules_.clear();
  scrubber_.unload();
  queue_.close();
  own_.close();
}

Result<void> CudaDevice::prepare() {
  driver_.context_set_limit(kPersistingL2, 0);  // ignores the error of a GPU without this feature
  CG_CHECK(queue_.prepare());
  return own_.prepare();
}

Result<std::vector<ModuleFacts>> CudaDevice::load(const std::vector<std::string>& ptx,
                                                  const std::vector<std::string>& code) {
  if (queue_.lost()) return world_error("this GPU context is broken", "start the runner again");
  return modules_.load(ptx, code);
}

Result<void> CudaDevice::bind(const std::vector<BufferBinding>& buffers) {
  if (queue_.lost()) return {};
  return buffers_.bind(buffers, queue_.stream());
}

Result<void> CudaDevice::read(const std::string& buffer, int64_t offset, std::span<std::byte> out) {
  if (queue_.lost()) return world_error("this GPU context is broken");
  return buffers_.read(buffer, offset, out);
}

Result<void> CudaDevice::run_once(const Context& ctx, const PlanSteps& steps, Nanoseconds limit,
                                  RunReport& report) {
  for (size_t i = 0; i < steps.size(); ++i) {
    queue_.record_begin();
    CG_TRY(Status queued, queue_.queue(steps[i], i == 0));
    queue_.record_end();
    Status ended = queued;
    if (queued == kOk) {
      CG_TRY(ended, queue_.wait(ctx, limit));
    }
    KernelProfile profile;
    profile.kernel = name_of(steps[i]);
    profile.origin = Origin::measured;
    CG_CHECK(queue_.note_fault(ended, profile.kernel, report));
    if (report.status != RunReport::Status::ok) return {};
    float ms = 0;
    queue_.elapsed(&ms);
    profile.time_ns = double(ms) * 1e6;
    report.kernels.push_back(std::move(profile));
  }
  return {};
}

Result<RunReport> CudaDevice::run(const Context& ctx, const PlanSteps& steps,
                                  const RunSettings& settings) {
  if (queue_.lost()) return world_error("this GPU context is broken", "start the runner again");
  RunReport report;
  CG_TRY(Status before,
         queue_.wait(ctx, settings.limit));  // until bind() has written the copies and guards
  CG_CHECK(driver_.check(before, "preparing a run"));
  buffers_.use_copy(0);
  CG_CHECK(run_once(ctx, steps, settings.limit, report));
  if (queue_.lost()) return report;
  CG_CHECK(copy_back(report));
  return report;
}

// Copies the buffers to the caller. A damaged guard is a finding.
Result<void> CudaDevice::copy_back(RunReport& report) {
  CG_TRY(std::string damage, buffers_.copy_back());
  if (report.status == RunReport::Status::ok && !damage.empty()) {
    report.status = RunReport::Status::finding;
    report.message = "out_of_bounds: " + damage;
  }
  return {};
}

Result<std::unique_ptr<Device>> open_cuda_device(const DeviceName& name) {
  CG_TRY(const Driver* driver, load_driver());
  CG_TRY(Found gpu, find_device(*driver, name));
  Handle context = nullptr;
  CG_CHECK(driver->check(driver->context_retain(&context, gpu.device),
                         "opening " + name.text() + " (" + gpu.identity.gpu + ")"));
  CG_CHECK(driver->check(driver->context_set(context), "opening " + name.text()));
  auto device = std::make_unique<CudaDevice>(*driver, std::move(gpu), context);
  CG_CHECK(device->prepare());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace cutegen::device::cuda
