// SPDX-License-Identifier: Apache-2.0
// Profile: counters and times of the kernels of a program, by kernel and by source line.
//
// Contract: every figure carries its origin. Counters are for the whole grid; if only a sample of
// the CTAs ran, sample_error is half the 95% interval relative to the total. docs/profile.md lists
// the names of the counters. A profile measured on a GPU also holds the simulator's counters of the
// same launches. JSON form: schema cutegen.profile.v1 (core/verdict.h).
//
// Example: for (const KernelProfile& k : profile.kernels) print(k.diagnosis.summary);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/names.h"

namespace cutegen {

enum class Origin { measured, modelled, cached, imported, skipped };
Names<Origin> enum_names(Origin);

// One figure of evidence: {"dram_pct", 91.2, "%"}.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
};

struct LineProfile {
  int line = 0;      // line number in the kernel's source; 0: unknown
  std::string text;  // the line's text without indentation
  std::map<std::string, double> counters;
};

// A cause of lost time, its place in the source, and the remedy.
struct ProfileRemark {
  std::string kind;  // "uncoalesced", "bank_conflicts", "occupancy", ...
  int line = 0;      // 0: the whole kernel
  std::string message;
  Origin origin = Origin::modelled;  // of its figures
};

// Units of a GPU that limit a kernel, as the time model and the counters name them. These are not
// all: "fma", "tensor", "issue" and "xu" also occur.
namespace gpu_unit {
inline constexpr const char *dram = "dram", *l2 = "l2", *l1 = "l1", *shared = "shared",
                            *latency = "latency", *launch = "launch";
}

// What limits the CTAs per SM.
namespace cta_limit {
inline constexpr const char *registers = "registers", *shared_memory = "shared memory",
                            *threads = "threads", *blocks = "blocks", *grid = "grid";
}

enum class Bound { unknown, memory, compute, balanced, latency };
Names<Bound> enum_names(Bound);

// What limits a kernel, and the figures that show it.
struct Diagnosis {
  Bound bound = Bound::unknown;
  std::string unit;  // the busiest unit: gpu_unit::dram, "fma", "issue", ...
  Origin origin = Origin::modelled;
  std::string summary;  // one line
  std::vector<Figure> evidence;
};

// The counters of one kernel launch, or of a sample of its CTAs.
struct KernelProfile {
  std::string kernel;
  Origin origin = Origin::modelled;
  double time_ns = 0;
  std::string bound_by;                    // gpu_unit::dram, "issue", gpu_unit::latency, ...
  std::map<std::string, double> counters;  // "warp_instructions", "global_load_sectors", ...
  double sampled_share = 1;                // share of the CTAs that ran
  double sample_error = 0;
  std::string limited_by;          // cta_limit::registers, cta_limit::grid, ...
  std::vector<LineProfile> lines;  // hottest first
  std::vector<ProfileRemark> remarks;
  Diagnosis diagnosis;
  // The simulator's counters of this launch, if `counters` come from a GPU.
  std::map<std::string, double> modelled = {};
};

// Where a profile's counters come from. resources: only the assembler's counts of registers and
// memory. tool: a profiler of the GPU's vendor.
struct CounterSource {
  enum class Kind { unknown, simulator, resources, tool };
  Kind kind = Kind::unknown;
  std::string tool = {};  // "ncu 2025.3.1.0"

  // "simulator", "resources", the tool's name, or empty.
  std::string text() const;
  static CounterSource from(const std::string& text);
};
Names<CounterSource::Kind> enum_names(CounterSource::Kind);

struct Profile {
  std::vector<KernelProfile> kernels;
  std::string shape;
  CounterSource source = {};
  std::string note = {};  // why a better source is not available, and what the user can do
};

}  // namespace cutegen
