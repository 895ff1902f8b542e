// SPDX-License-Identifier: Apache-2.0
// GpuSpec: limits and peak figures of a GPU model, from a TOML file (gpus/NAME.toml).
//
// Contract: every table of the file names the source of its figures. find_gpu knows the shipped
// files ("h200", "h100", "a100") and an explicit path; an unknown name lists the known ones.
// Peaks are nominal, so that the floor is physical: no correct program is faster. The roofline is
// an estimate of the operations as written; a program with better algebra passes it.
//
// Example: CG_TRY(GpuSpec g, find_gpu("h200")); double ns = roofline(g, {.least = bytes}).floor_ns;
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace cutegen {

// What one SM does in a clock: lanes of each pipe, bytes of its memories.
struct GpuRates {
  double schedulers = 0;  // warp instructions issued
  double fp32_lanes = 0, half_lanes = 0, fp64_lanes = 0, integer_lanes = 0, special_lanes = 0,
         convert_lanes = 0, load_store_lanes = 0;
  double l1_bytes = 0, shared_bytes = 0;
};
// What a dependent instruction waits for, in clocks, and how much of a bandwidth is reached.
struct GpuLatency {
  double arithmetic = 0, special = 0, shuffle = 0, shared = 0, barrier = 0, tensor = 0, global = 0,
         cta =
             0;  // cta: from its start to its first instruction, and from its last to the next CTA
  double dram_efficiency = 0;
};

struct GpuSpec {
  std::string id, name, arch;  // "h200", "NVIDIA H200", "sm_90a"
  int sms = 0;
  int max_threads_per_block = 0, max_threads_per_sm = 0, max_blocks_per_sm = 0,
      registers_per_sm = 0;
  int64_t shared_bytes_per_sm = 0, shared_bytes_per_block = 0, l2_bytes = 0, memory_bytes = 0;
  double clock_hz = 0, dram_bytes_per_s = 0, l2_bytes_per_s = 0;
  double launch_ns = 0;                       // what a launch usually costs
  double least_launch_ns = 0;                 // no kernel between two events takes less
  std::map<std::string, double> flops_per_s;  // by math mode: "fp32", "tf32", "fp16", "bf16"
  GpuRates rates;
  GpuLatency latency;
  std::map<std::string, double> mma_flops_per_s;  // of mma.sync: also "fp64" and "int8"
};

// What a task has to do at one shape. The kinds of operations use different units: matrix units
// serve products and convolutions only.
struct Work {
  Flops products, convolutions, other;
  Bytes least;    // that cross the memory: what must be read, once, and the outputs
  Bytes written;  // of them, the outputs: they may stay in the L2 until the program has ended
  std::string math_mode = "fp32";  // "fp32", "tf32", "fp16" or "bf16"
  bool tf32_convolutions = false;  // fp32 as PyTorch ships
};

// What is known of a task's time before anything runs, on one GPU.
struct Roofline {
  double floor_ns = 0;      // no correct program is faster: the bytes that must cross the memory's
                            // bus before the end, at its nominal bandwidth, or the least launch
  double reachable_ns = 0;  // least bytes at the bandwidth that a copy reaches, and a launch
  double roofline_ns = 0;   // an estimate: max(compute_ns, memory_ns) of the graph as written
  double compute_ns = 0;    // its FLOPs on the fastest unit that is as accurate as the math mode
  double memory_ns = 0;     // least bytes at the nominal bandwidth
  std::string bound_by;     // of the roofline: "memory" | "compute" | "launch"
};

[[nodiscard]] Result<GpuSpec> find_gpu(const std::string& name);
// The GPU that a driver calls `product` ("NVIDIA H100 80GB HBM3"): the shipped file whose name is a
// word of it. A GPU without a file is a world error.
[[nodiscard]] Result<GpuSpec> gpu_of_product(const std::string& product);
// The text of a GPU file; `name` is put into errors.
[[nodiscard]] Result<GpuSpec> parse_gpu(const std::string& id, const std::string& text,
                                        const std::string& name);
[[nodiscard]] std::vector<std::string> known_gpus();
[[nodiscard]] Roofline roofline(const GpuSpec& gpu, const Work& work);

}  // namespace cutegen
