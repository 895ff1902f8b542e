// SPDX-License-Identifier: Apache-2.0
// How many CTAs of a launch a GPU holds at once.
#include <algorithm>

#include "ptx/machine.h"

namespace cutegen::ptx {

int64_t resident_ctas(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& config) {
  const int64_t threads = (config.block[0] * config.block[1] * config.block[2] + 31) / 32 * 32;
  // As the assembler allots them: in eights, a few more than the values that live at once.
  const int64_t registers = std::clamp((entry.registers_estimate + 6 + 7) / 8 * 8, 16, 255);
  const int64_t shared = entry.static_shared_bytes + config.shared_bytes + 1024;
  const int64_t per_sm =
      std::min({int64_t(gpu.max_blocks_per_sm), gpu.max_threads_per_sm / threads,
                gpu.registers_per_sm / (registers * threads), gpu.shared_bytes_per_sm / shared});
  return std::max<int64_t>(1, per_sm) * std::max(1, gpu.sms);
}

}  // namespace cutegen::ptx
