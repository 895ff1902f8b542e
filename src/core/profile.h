// SPDX-License-Identifier: Apache-2.0
// Profile: counters and times of a program's kernels, per kernel and per source line.
//
// Contract: every figure has an `Origin`: measured, modelled, and so on. Counters are for the whole
// grid. If the simulator ran only a sample of the CTAs, the counters are estimates. A counter's
// relative error is half of its 95% interval, divided by the counter, and sample_error is the
// largest relative error of all counters. The page docs/profile.md lists the counters' names. A
// profile measured on a GPU also contains the simulator's counters of the same launches. JSON form:
// schema cutegen.profile.v1 (core/verdict.h).
//
// Example: for (const KernelProfile& k : profile.kernels) print(k.diagnosis.summary);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/names.h"
#include "gpu/cta_limit.h"

namespace cutegen {

enum class Origin { measured, modelled, cached, imported, skipped };
Names<Origin> enum_names(Origin);

// One figure that supports a diagnosis: {"dram_pct", 91.2, "%"}.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
};

struct LineProfile {
  int line = 0;      // line number in the source of the kernel; 0 if unknown
  std::string text;  // the line's text without indentation
  std::map<std::string, double> counters;
};

// Describes a cause of lost time, the cause's place in the source, and the remedy.
struct ProfileRemark {
  std::string kind;  // the cause: "uncoalesced", "bank_conflicts", "occupancy", ...
  int line = 0;      // line number; 0 if the remark concerns the whole kernel
  std::string message;
  Origin origin = Origin::modelled;  // origin of the figures in `message`
};

// Names of some GPU units that can limit a kernel. The time model and the counters also use the
// names "fma", "tensor", "issue" and "xu".
namespace gpu_unit {
inline constexpr const char *dram = "dram", *l2 = "l2", *l1 = "l1", *shared = "shared",
                            *latency = "latency", *launch = "launch";
}

enum class Bound { unknown, memory, compute, balanced, latency };
Names<Bound> enum_names(Bound);

// Names the hardware unit that limits a kernel, with the figures that show this limit.
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
  std::string bound_by;                    // limiting unit: gpu_unit::dram, "issue", ...
  std::map<std::string, double> counters;  // "warp_instructions", "global_load_sectors", ...
  double sampled_share = 1;                // CTAs that the simulator ran / CTAs of the grid
  double sample_error = 0;
  CtaLimit limited_by = CtaLimit::unknown;
  std::vector<LineProfile> lines;  // source lines, the costliest first
  std::vector<ProfileRemark> remarks;
  Diagnosis diagnosis;
  // If `counters` come from a GPU, `modelled` has the simulator's counters of the same launch.
  std::map<std::string, double> modelled = {};
};

// The source of a profile's counters. `resources`: no counters, only the register and memory use
// that ptxas reports. `tool`: a profiler of the GPU's vendor.
struct CounterSource {
  enum class Kind { unknown, simulator, resources, tool };
  Kind kind = Kind::unknown;
  std::string tool = {};  // "ncu 2025.3.1.0"

  // Returns "simulator", "resources", the tool's name, or an empty text if the source is unknown.
  std::string text() const;
  static CounterSource from(const std::string& text);
};
Names<CounterSource::Kind> enum_names(CounterSource::Kind);

struct Profile {
  std::vector<KernelProfile> kernels;
  std::string shape;
  CounterSource source = {};
  std::string note = {};  // why no better source of counters was available, and the remedy
};

}  // namespace cutegen
