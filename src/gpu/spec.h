// SPDX-License-Identifier: Apache-2.0
// GpuSpec: the limits and peak rates of a GPU model, read from a TOML file (gpus/NAME.toml).
//
// Contract: every table of the file names the source of its figures. The function find_gpu() takes
// the name of a shipped file ("h200", "h100", "a100") or a path. For an unknown name, the error
// lists the known names. Roofline::floor_ns is a physical bound, because it uses the nominal
// bandwidth: no correct program is faster. Roofline::roofline_ns is only an estimate for the task's
// operations as written. A program that needs fewer operations can be faster than roofline_ns.
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

// The rates of one SM per clock: lanes of each execution pipe, and bytes of L1 and shared memory.
struct GpuRates {
  double schedulers = 0;  // warp instructions issued
  double fp32_lanes = 0, half_lanes = 0, fp64_lanes = 0, integer_lanes = 0, special_lanes = 0,
         convert_lanes = 0, load_store_lanes = 0;
  double l1_bytes = 0, shared_bytes = 0;
};
// Latencies in clocks: how many clocks an instruction waits for the result of an earlier
// instruction of each type. `cta` is the number of clocks to start a CTA (up to its first
// instruction) and to end it (from its last instruction to the start of the next CTA).
// `dram_efficiency` is the share of the DRAM bandwidth that a copy reaches.
struct GpuLatency {
  double arithmetic = 0, special = 0, shuffle = 0, shared = 0, barrier = 0, tensor = 0, global = 0,
         cta = 0;
  double dram_efficiency = 0;
};

struct GpuSpec {
  std::string id, name, arch;  // such as "h200", "NVIDIA H200", "sm_90a"
  int sms = 0;
  int max_threads_per_block = 0, max_threads_per_sm = 0, max_blocks_per_sm = 0,
      registers_per_sm = 0;
  int64_t shared_bytes_per_sm = 0, shared_bytes_per_block = 0, l2_bytes = 0, memory_bytes = 0;
  double clock_hz = 0, dram_bytes_per_s = 0, l2_bytes_per_s = 0;
  double launch_ns = 0;        // typical time that a launch adds to a program
  double least_launch_ns = 0;  // shortest time between two CUDA events around a kernel
  std::map<std::string, double> flops_per_s;  // peak rate by math mode: "fp32", "tf32", ...
  GpuRates rates;
  GpuLatency latency;
  // peak rate of mma.sync by operand type, including "fp64" and "int8"
  std::map<std::string, double> mma_flops_per_s;
};

// The work of a task at one shape. Matrix products and convolutions are separate from `other`,
// because only they can use tensor cores.
struct Work {
  Flops products, convolutions, other;
  Bytes least;    // bytes that must cross the memory bus: all outputs, and each needed input once
  Bytes written;  // outputs' part of `least`, which may stay in L2 until the program ends
  MathMode math_mode = MathMode::fp32;
  bool tf32_convolutions = false;  // convolutions may use TF32 although products are fp32
};

// The resource that determines Roofline::roofline_ns.
enum class RooflineBound { memory, compute, launch };
Names<RooflineBound> enum_names(RooflineBound);

// Bounds and estimates of a task's time on one GPU, computed without running anything.
struct Roofline {
  // No correct program is faster than floor_ns: the larger of the shortest launch and the time to
  // move, at nominal bandwidth, the bytes that must cross the memory bus before the program ends.
  double floor_ns = 0;
  double reachable_ns = 0;  // time to move Work::least at the bandwidth of a copy, plus a launch
  // Estimate for the graph as written: max(compute_ns, memory_ns, shortest launch).
  double roofline_ns = 0;
  // Time of the task's FLOPs on the fastest execution unit that is as accurate as the math mode.
  double compute_ns = 0;
  double memory_ns = 0;  // time to move Work::least at the nominal bandwidth
  RooflineBound bound_by = RooflineBound::memory;
};

Result<GpuSpec> find_gpu(const std::string& name);
// Finds the shipped GPU file whose name is a word of `product`, the driver's name of the GPU
// ("NVIDIA H100 80GB HBM3"). Returns a world error if no file matches.
Result<GpuSpec> gpu_of_product(const std::string& product);
// Parses the text of a GPU file. Errors mention `name`.
Result<GpuSpec> parse_gpu(const std::string& id, const std::string& text, const std::string& name);
std::vector<std::string> known_gpus();
Roofline roofline(const GpuSpec& gpu, const Work& work);

}  // namespace cutegen
