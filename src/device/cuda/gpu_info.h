// SPDX-License-Identifier: Apache-2.0
// What the driver reports about a GPU, and the state of its clocks.
//
// Contract: "cuda:N" is the N-th GPU that the driver shows (after CUDA_VISIBLE_DEVICES).
// find_device() creates no context. A missing driver or GPU is a world error with its remedy. Watch
// reads clocks through NVML. Without NVML it returns nothing.
//
// Example: CG_TRY(Found gpu, find_device(*driver, "cuda:0")); fmt::print("{}", gpu.identity.gpu);
#pragma once

#include <map>
#include <string>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace cutegen::device::cuda {

struct Found {
  int device = 0;  // the driver's device number
  DeviceFacts facts;
  DeviceIdentity identity;
};
Result<Found> find_device(const Driver& driver, const DeviceName& name);
// Every GPU that the driver shows.
Result<std::vector<Found>> list_devices();

class Watch {
 public:
  explicit Watch(const std::string& uuid);
  // The current "sm_clock_hz", "memory_clock_hz", "sm_clock_most_hz", "temperature_c", "power_w"
  // and "throttle_reasons", if NVML knows them.
  std::map<std::string, double> read() const;
  std::string driver_version() const;  // "580.159.04", or empty

 private:
  template <class F>
  F function(const char* name) const;
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace cutegen::device::cuda
