// SPDX-License-Identifier: Apache-2.0
// Profile: counters and times of the kernels of a program, by kernel and by source line.
//
// Contract: every figure carries where it comes from. Counters are of the whole grid; where a
// sample of the CTAs ran, sample_error is half the 95% interval over the total. Names of counters
// are listed in docs/profile.md. A profile measured on a GPU has the simulator's counters of the
// same launches beside the hardware's. JSON form: schema cutegen.profile.v1 (core/verdict.h).
//
// Example: for (const KernelProfile& k : profile.kernels) print(k.diagnosis.summary);
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cutegen {

enum class Origin { measured, modelled, cached, imported, skipped };
[[nodiscard]] const char* to_string(Origin origin);

// One figure of evidence: {"dram_pct", 91.2, "%"}.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
};

struct LineProfile {
  int line = 0;      // of the kernel's source; 0: unknown
  std::string text;  // of that line, without indentation
  std::map<std::string, double> counters;
};

// Something that costs time, where, and what to do about it.
struct ProfileRemark {
  std::string kind;  // "uncoalesced", "bank_conflicts", "occupancy", ...
  int line = 0;      // 0: the whole kernel
  std::string message;
  Origin origin = Origin::modelled;  // of the figures that it rests on
};

// What holds a kernel back, and the figures that say so.
struct Diagnosis {
  std::string bound;  // "memory", "compute", "balanced", "latency"; empty: not known
  std::string unit;   // in use most: "dram", "l2", "fma", "issue", ...
  Origin origin = Origin::modelled;
  std::string summary;  // one line
  std::vector<Figure> evidence;
};

// Counters of one kernel launch (or of a sample of its CTAs).
struct KernelProfile {
  std::string kernel;
  Origin origin = Origin::modelled;
  double time_ns = 0;
  std::string bound_by;                    // "dram", "issue", "latency", ...
  std::map<std::string, double> counters;  // "warp_instructions", "global_load_sectors", ...
  double sampled_share = 1;                // share of the CTAs that ran
  double sample_error = 0;
  std::string limited_by;          // what limits the CTAs of an SM: "registers", "grid", ...
  std::vector<LineProfile> lines;  // the hottest first
  std::vector<ProfileRemark> remarks;
  Diagnosis diagnosis;
  // The simulator's counters of this launch, where `counters` are a GPU's own.
  std::map<std::string, double> modelled = {};
};
struct Profile {
  std::vector<KernelProfile> kernels;
  std::string shape;
  std::string source = {};  // what counted: "simulator", "ncu 2025.3.1.0", "resources"
  std::string note = {};    // why nothing better could be had, and what helps
};

}  // namespace cutegen
