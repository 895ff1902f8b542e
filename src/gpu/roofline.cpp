// SPDX-License-Identifier: Apache-2.0
// The floor that no program can beat, the reachable bound, and the roofline estimate.
#include <algorithm>

#include "gpu/spec.h"

namespace cutegen {
namespace {

constexpr double kProductsOfFp32 = 3;  // tf32 products that emulate one fp32 product

double peak(const GpuSpec& gpu, MathMode mode) {
  auto at = gpu.flops_per_s.find(to_string(mode));
  CG_ASSERT(at != gpu.flops_per_s.end());
  return at->second;
}

double products_per_s(const GpuSpec& gpu, MathMode mode) {
  if (mode != MathMode::fp32) return peak(gpu, mode);
  return std::max(peak(gpu, MathMode::fp32), peak(gpu, MathMode::tf32) / kProductsOfFp32);
}

// FLOP/s without matrix units. Each half-precision lane computes two values at once.
double other_per_s(const GpuSpec& gpu, MathMode mode) {
  const double fp32 = peak(gpu, MathMode::fp32);
  if (mode != MathMode::fp16 && mode != MathMode::bf16) return fp32;
  return std::max(fp32, 4 * gpu.rates.half_lanes * gpu.sms * gpu.clock_hz);
}

}  // namespace

Names<RooflineBound> enum_names(RooflineBound) {
  static constexpr Name<RooflineBound> names[] = {{RooflineBound::memory, "memory"},
                                                  {RooflineBound::compute, "compute"},
                                                  {RooflineBound::launch, "launch"}};
  return names;
}

Roofline roofline(const GpuSpec& gpu, const Work& work) {
  const MathMode convolutions =
      work.tf32_convolutions && work.math_mode == MathMode::fp32 ? MathMode::tf32 : work.math_mode;
  const double products_s = work.products.value / products_per_s(gpu, work.math_mode) +
                            work.convolutions.value / products_per_s(gpu, convolutions);
  const double other_s = work.other.value / other_per_s(gpu, work.math_mode);
  const auto least = double(work.least.value);
  const auto kept = double(std::min({work.written.value, gpu.l2_bytes, work.least.value}));
  Roofline r;
  r.compute_ns = std::max(products_s, other_s) * 1e9;  // matrix units and other units overlap
  r.memory_ns = least / gpu.dram_bytes_per_s * 1e9;
  r.roofline_ns = std::max({r.compute_ns, r.memory_ns, gpu.least_launch_ns});
  r.floor_ns = std::max((least - kept) / gpu.dram_bytes_per_s * 1e9, gpu.least_launch_ns);
  r.reachable_ns = r.memory_ns / gpu.latency.dram_efficiency + gpu.launch_ns;
  r.bound_by = std::max(r.compute_ns, r.memory_ns) < gpu.launch_ns ? RooflineBound::launch
               : r.compute_ns > r.memory_ns                        ? RooflineBound::compute
                                                                   : RooflineBound::memory;
  return r;
}

}  // namespace cutegen
