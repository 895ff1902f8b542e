// SPDX-License-Identifier: Apache-2.0
// What the driver tells of a GPU, and what its clocks do.
//
// Contract: "cuda:N" is the N-th GPU that the driver shows (CUDA_VISIBLE_DEVICES counts). find_gpu
// makes no context. No driver, no such GPU: a world error with the remedy. Watch reads clocks
// through NVML where it can be loaded; elsewhere it has nothing to say.
//
// Example: CG_TRY(Found gpu, find_device(*driver, "cuda:0")); fmt::print("{}", gpu.identity.gpu);
#pragma once

#include <map>
#include <string>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace cutegen::cuda {

struct Found {
  int device = 0;  // the driver's number
  DeviceFacts facts;
  DeviceIdentity identity;
};
[[nodiscard]] Result<Found> find_device(const Driver& driver, const std::string& name);
// Every GPU that the driver shows.
[[nodiscard]] Result<std::vector<Found>> list_devices();

class Watch {
 public:
  explicit Watch(const std::string& uuid);
  // "sm_clock_hz", "memory_clock_hz", "sm_clock_most_hz", "temperature_c", "power_w",
  // "throttle_reasons": what is known now.
  [[nodiscard]] std::map<std::string, double> read() const;
  [[nodiscard]] std::string driver_version() const;  // "580.159.04", or empty

 private:
  template <class F>
  [[nodiscard]] F function(const char* name) const;
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace cutegen::cuda
