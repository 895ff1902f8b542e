// SPDX-License-Identifier: Apache-2.0
// Reads the properties of a GPU from the CUDA driver, and the GPU's clocks from NVML.
//
// Contract: "cuda:N" is the N-th GPU that the driver lists, subject to CUDA_VISIBLE_DEVICES. The
// function find_device() creates no CUDA context. If the driver or the GPU is missing, it returns a
// world error with a remedy. The class `Watch` reads clocks through NVML. If the host has no NVML,
// Watch::read() returns an empty map.
//
// Example: CG_TRY(Found gpu, find_device(*driver, "cuda:0")); fmt::print("{}", gpu.identity.gpu);
#pragma once

#include <map>
#include <string>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace cutegen::device::cuda {

struct Found {
  int device = 0;  // device number of the CUDA driver
  DeviceFacts facts;
  DeviceIdentity identity;
};
Result<Found> find_device(const Driver& driver, const DeviceName& name);
// Returns every GPU that the driver lists.
Result<std::vector<Found>> list_devices();

class Watch {
 public:
  explicit Watch(const std::string& uuid);
  // Returns the present "sm_clock_hz", "memory_clock_hz", "sm_clock_most_hz", "temperature_c",
  // "power_w" and "throttle_reasons", without the values that NVML does not know.
  std::map<std::string, double> read() const;
  std::string driver_version() const;  // "580.159.04", or empty

 private:
  template <class F>
  F function(const char* name) const;
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace cutegen::device::cuda
