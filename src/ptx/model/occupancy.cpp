// SPDX-License-Identifier: Apache-2.0
// How many CTAs of a launch a GPU holds at once, and what limits them.
#include <algorithm>
#include <cmath>

#include "ptx/model/model_time.h"

namespace cutegen::ptx {
namespace {

constexpr double kRegisterGrain = 256;     // a warp gets registers in blocks of this size
constexpr double kSharedGrain = 1024;      // same for a CTA's shared memory; one more is reserved
constexpr double kUncountedRegisters = 6;  // for addresses and copies that the PTX does not show

}  // namespace

Occupancy occupancy_of(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& config) {
  const double ctas = double(config.grid[0]) * double(config.grid[1]) * double(config.grid[2]);
  const double warps_of_cta =
      std::ceil(double(config.block[0] * config.block[1] * config.block[2]) / 32);
  Occupancy o;
  o.registers =
      std::clamp(std::ceil((entry.registers_estimate + kUncountedRegisters) / 8) * 8, 16.0, 255.0);
  const double of_warp = std::ceil(o.registers * 32 / kRegisterGrain) * kRegisterGrain;
  const double shared = double(entry.static_shared_bytes + config.shared_bytes);
  const double reserved = std::ceil(shared / kSharedGrain) * kSharedGrain + kSharedGrain;
  const std::pair<CtaLimit, double> limits[] = {
      {CtaLimit::blocks, gpu.max_blocks_per_sm},
      {CtaLimit::threads, std::floor(gpu.max_threads_per_sm / (warps_of_cta * 32))},
      {CtaLimit::registers, std::floor(gpu.registers_per_sm / (of_warp * warps_of_cta))},
      {CtaLimit::shared_memory, std::floor(double(gpu.shared_bytes_per_sm) / reserved)}};
  o.resident_ctas = gpu.max_blocks_per_sm + 1;
  for (const auto& [resource, most] : limits) {
    o.limits[resource] = most;
    if (most < o.resident_ctas) o.resident_ctas = most, o.limited_by = resource;
  }
  o.resident_ctas = std::max(1.0, o.resident_ctas);
  const double waves = ctas / (o.resident_ctas * gpu.sms);
  o.waves = std::ceil(waves);
  o.tail = waves - (o.waves - 1);
  if (waves < 1) o.limited_by = CtaLimit::grid;
  const double warps = std::min(o.resident_ctas, std::ceil(ctas / gpu.sms)) * warps_of_cta;
  o.share = std::min(1.0, warps / (gpu.max_threads_per_sm / 32.0));
  return o;
}

int64_t resident_ctas(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& config) {
  return int64_t(occupancy_of(gpu, entry, config).resident_ctas) * std::max(1, gpu.sms);
}

}  // namespace cutegen::ptx
