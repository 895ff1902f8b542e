// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "device/sim_device.h"

namespace cutegen {
namespace {

Result<GpuSpec> simulated_gpu(const std::string& name) {
  if (name.starts_with("cuda:")) {
    return world_error("device " + sanitize(name, 60) + ": running on CUDA GPUs is not built yet",
                       "use a simulated one, such as sim:h200");
  }
  if (!name.starts_with("sim:")) {
    std::vector<std::string> known;
    for (const std::string& id : known_gpus()) known.push_back("sim:" + id);
    return user_error("unknown device " + sanitize(name, 60), {},
                      "use one of " + join(known, ", "));
  }
  return find_gpu(name.substr(4));
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const std::string& name) {
  CG_TRY(GpuSpec gpu, simulated_gpu(name));
  return std::make_unique<SimDevice>(name, std::move(gpu));
}

Result<DeviceFacts> device_facts(const std::string& name) {
  CG_TRY(GpuSpec gpu, simulated_gpu(name));
  return sim_facts(name, gpu);
}

}  // namespace cutegen
