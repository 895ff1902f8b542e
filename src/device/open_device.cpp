// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"
#include "device/sim_device.h"

namespace cutegen::device {

Result<std::unique_ptr<Device>> open_device(const DeviceName& name) {
  if (name.is_gpu()) return cuda::open_cuda_device(name);
  CG_TRY(GpuSpec gpu, simulated_gpu(name));
  return std::make_unique<SimDevice>(name.text(), std::move(gpu));
}

Result<RunReport> Device::time(const Context&, const TimeRequest&) {
  return unsupported_error("this device cannot measure time");
}

}  // namespace cutegen::device
