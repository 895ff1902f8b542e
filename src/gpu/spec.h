// SPDX-License-Identifier: Apache-2.0
// GpuSpec: limits and peak figures of a GPU model, read from a TOML file (gpus/NAME.toml).
//
// Contract: every table of the file names the source of its figures. find_gpu takes the name of a
// shipped file ("h200", "h100", "a100") or a path; for an unknown name, the error lists the known
// ones. The bandwidth is nominal, so the floor is a physical bound: no correct program is faster.
// The roofline only estimates the operations as written; a program with better algebra can be
// faster.
//
// Example: CG_TRY(GpuSpec g, find_gpu("h200")); double ns = roofline(g, {.least = bytes}).floor_ns;
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "gpu/math_mode.h"

namespace cutegen {

// What one SM can do per clock: lanes of each pipe, bytes of its memories.
struct GpuRates {
  double schedulers = 0;  // warp instructions issued
  double fp32_lanes = 0, half_lanes = 0, fp64_lanes = 0, integer_lanes = 0, special_lanes = 0,
         convert_lanes = 0, load_store_lanes = 0;
  double l1_bytes = 0, shared_bytes = 0;
};
// How many clocks a dependent instruction waits, and which share of the bandwidth a copy reaches.
// cta: the clocks to start a CTA (up to its first instruction) and to end it (from its last
// instruction to the start of the next CTA).
struct GpuLatency {
  double arithmetic = 0, special = 0, shuffle = 0, shared = 0, barrier = 0, tensor = 0, global = 0,
         cta = 0;
  double dram_efficiency = 0;
};

struct GpuSpec {
  std::string id, name, arch;  // "h200", "NVIDIA H200", "sm_90a"
  int sms = 0;
  int max_threads_per_block = 0, max_threads_per_sm = 0, max_blocks_per_sm = 0,
      registers_per_sm = 0;
  int64_t shared_bytes_per_sm = 0, shared_bytes_per_block = 0, l2_bytes = 0, memory_bytes = 0;
  double clock_hz = 0, dram_bytes_per_s = 0, l2_bytes_per_s = 0;
  double launch_ns = 0;                       // the usual cost of a launch
  double least_launch_ns = 0;                 // least time between two events around a kernel
  std::map<std::string, double> flops_per_s;  // peak by math mode: "fp32", "tf32", "fp16", "bf16"
  GpuRates rates;
  GpuLatency latency;
  std::map<std::string, double> mma_flops_per_s;  // peak of mma.sync; also "fp64" and "int8"
};

// The work of a task at one shape, split by the unit that executes it: only products and
// convolutions can use matrix units.
struct Work {
  Flops products, convolutions, other;
  Bytes least;    // bytes that must cross the memory bus: outputs, and needed inputs once
  Bytes written;  // the outputs among them, which may stay in the L2 to the end
  MathMode math_mode = MathMode::fp32;
  bool tf32_convolutions = false;  // fp32 with PyTorch's defaults
};

// What limits the roofline.
enum class RooflineBound { memory, compute, launch };
Names<RooflineBound> enum_names(RooflineBound);

// Bounds and estimates of a task's time on one GPU, before anything runs.
struct Roofline {
  // No correct program is faster: time to move the bytes that must cross the memory bus before the
  // end, at nominal bandwidth, or the least launch.
  double floor_ns = 0;
  double reachable_ns = 0;  // least bytes at the bandwidth that a copy reaches, plus a launch
  double roofline_ns = 0;   // estimate, graph as written: max(compute_ns, memory_ns, least launch)
  // Time of the task's FLOPs on the fastest unit that is as accurate as the math mode.
  double compute_ns = 0;
  double memory_ns = 0;  // least bytes at the nominal bandwidth
  RooflineBound bound_by = RooflineBound::memory;
};

Result<GpuSpec> find_gpu(const std::string& name);
// The shipped GPU whose name is a word of `product`, the name that the driver reports ("NVIDIA H100
// 80GB HBM3"). A world error if no file matches.
Result<GpuSpec> gpu_of_product(const std::string& product);
// Parses the text of a GPU file; errors mention `name`.
Result<GpuSpec> parse_gpu(const std::string& id, const std::string& text, const std::string& name);
std::vector<std::string> known_gpus();
Roofline roofline(const GpuSpec& gpu, const Work& work);

}  // namespace cutegen
