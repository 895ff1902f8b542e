// SPDX-License-Identifier: Apache-2.0
// The time model: a launch's time on a GPU and the resource that bounds it, from its counters.
//
// Contract: the time is a soft maximum over the times that each pipe and memory level would take
// alone, plus the cost of a launch. The pipes are those of the busiest SM, which runs ceil(CTAs /
// SMs) CTAs; L2 and DRAM serve the whole chip. For each buffer, DRAM moves the sectors loaded and
// the sectors stored, but at most the buffer's size for each. If the data of the resident CTAs do
// not fit in L2, rereads count, too. The latency term is the time of one warp (ptx/model/chain.h)
// times the waves, or an estimate from the counters if no Chain followed a warp. Except in the
// chain, more instructions, wavefronts or bytes never make a launch faster. The number of registers
// is an estimate from the PTX. Every result is `modelled`.
//
// Example: ModelledTime t = model_time(gpu, report, entry, config); t.bound_by; // "dram"
#pragma once

#include <map>
#include <string>

#include "gpu/spec.h"
#include "ptx/machine/machine.h"

namespace cutegen::ptx {

struct Occupancy {
  double resident_ctas = 0;    // per SM
  double share = 0;            // resident warps / warps that an SM can hold
  std::string limited_by;      // "registers", "shared memory", "threads", "blocks", "grid"
  double waves = 0, tail = 0;  // tail: the share of the last wave that is filled
  double registers = 0;        // allocated registers per thread, modelled
  std::map<std::string, double> limits;  // CTAs per SM that each resource allows
};

struct ModelledTime {
  double time_ns = 0;
  std::string bound_by, next;  // the largest term and the one after it
  double lead = 1;             // bound_by / next
  std::map<std::string, double> terms_ns;
  Occupancy occupancy;
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double bytes_in_flight = 0,
         // Bytes in flight of the whole chip, and the bytes that saturate DRAM.
      bytes_to_saturate = 0;
};

ModelledTime model_time(const GpuSpec& gpu, const LaunchReport& report, const Entry& entry,
                        const LaunchConfig& config);
Occupancy occupancy_of(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& config);

}  // namespace cutegen::ptx
