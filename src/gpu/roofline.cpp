// SPDX-License-Identifier: Apache-2.0
// The floor no kernel can pass: arithmetic at the nominal peak, traffic at the nominal bandwidth.
#include <algorithm>

#include "gpu/spec.h"

namespace cutegen {

Roofline roofline(const GpuSpec& gpu, Flops flops, Bytes least_bytes,
                  const std::string& math_mode) {
  auto peak = gpu.flops_per_s.find(math_mode);
  CG_ASSERT(peak != gpu.flops_per_s.end());
  Roofline r;
  r.compute_ns = flops.value / peak->second * 1e9;
  r.memory_ns = static_cast<double>(least_bytes.value) / gpu.dram_bytes_per_s * 1e9;
  r.floor_ns = std::max(r.compute_ns, r.memory_ns);
  // Below the cost of a launch the roofline is true, but is not what a user will feel.
  r.bound_by = r.floor_ns < gpu.launch_ns   ? "launch"
               : r.compute_ns > r.memory_ns ? "compute"
                                            : "memory";
  return r;
}

}  // namespace cutegen
