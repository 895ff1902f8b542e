// SPDX-License-Identifier: Apache-2.0
#include "device/sim_facts.h"

#include "base/text.h"

namespace cutegen::device {

Result<GpuSpec> simulated_gpu(const DeviceName& name) {
  if (name.is_gpu()) return user_error(name.text() + " is not a simulator", {}, "use sim:h200");
  return find_gpu(name.model);
}

DeviceFacts sim_facts(const std::string& name, const GpuSpec& gpu) {
  DeviceFacts f;
  f.name = name, f.arch = gpu.arch, f.sms = gpu.sms;
  f.max_threads_per_block = gpu.max_threads_per_block;
  f.max_shared_bytes = gpu.shared_bytes_per_block;
  f.max_threads_per_sm = gpu.max_threads_per_sm, f.max_blocks_per_sm = gpu.max_blocks_per_sm;
  f.shared_bytes_per_sm = gpu.shared_bytes_per_sm;
  return f;
}

Result<DeviceFacts> device_facts(const DeviceName& name) {
  CG_TRY(GpuSpec gpu, simulated_gpu(name));
  return sim_facts(name.text(), gpu);
}

}  // namespace cutegen::device
