// SPDX-License-Identifier: Apache-2.0
// Time model: computes the time of a launch on a GPU, and the resource that limits it, from the
// counters of the launch.
//
// Contract: the time is a smooth maximum of the times that each pipe and each memory level would
// take alone, plus the cost of a launch. The model computes pipe times for the busiest SM, which
// runs ceil(CTAs / SMs) CTAs, and the times of L2 and DRAM for the whole chip. For each buffer, the
// DRAM traffic is the loaded sectors, at most the buffer's size, plus the stored sectors, at most
// the buffer's size. If the data of the resident CTAs do not fit in L2, the model adds repeated
// loads. The latency term is the time of one warp (ptx/model/chain.h) times the number of waves.
// Without a Chain, the model estimates the time of one warp from the counters. In all terms but the
// latency term, more instructions, wavefronts or bytes never reduce the time. The number of
// registers is an estimate from the PTX. Every result has the origin `modelled`.
//
// Example: ModelledTime t = model_time(gpu, report, entry, config); t.bound_by; // "dram"
#pragma once

#include <map>
#include <string>

#include "gpu/cta_limit.h"
#include "gpu/spec.h"
#include "ptx/machine/machine.h"

namespace cutegen::ptx {

struct Occupancy {
  double resident_ctas = 0;  // per SM
  double share = 0;          // resident warps / warps that an SM can hold
  CtaLimit limited_by = CtaLimit::unknown;
  double waves = 0, tail = 0;         // `tail` is the share of the last wave that is filled
  double registers = 0;               // estimated registers per thread, rounded up as on a GPU
  std::map<CtaLimit, double> limits;  // CTAs per SM that each resource allows
};

struct ModelledTime {
  double time_ns = 0;
  std::string bound_by, next;  // the largest term and the second largest
  double lead = 1;             // bound_by / next
  std::map<std::string, double> terms_ns;
  Occupancy occupancy;
  double dram_read_bytes = 0, dram_write_bytes = 0;
  // Bytes that the loads of the whole GPU have in flight, and the bytes in flight that would
  // saturate DRAM.
  double bytes_in_flight = 0, bytes_to_saturate = 0;
};

ModelledTime model_time(const GpuSpec& gpu, const LaunchReport& report, const Entry& entry,
                        const LaunchConfig& config);
Occupancy occupancy_of(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& config);

}  // namespace cutegen::ptx
