// SPDX-License-Identifier: Apache-2.0
// Certificate: what a program is worth beside its baselines, measured in fresh processes.
//
// Contract: `measured` figures only, at the official shape; of a task with several weighted shapes,
// `modes` are weighted geometric means and `shapes` has each of them. Each ratio is the median over
// rounds in which the program and the baselines took turns, of all processes together, with its 95%
// interval. Modes: cold (other data in the L2), warm, graph (as one CUDA graph, cold), call (the
// host's clock from the call to its end, cold). JSON form: schema cutegen.certificate.v1.
//
// Example: for (const CertifiedMode& m : c.modes) for (const PairedRatio& p : m.against) use(p);
#pragma once

#include "core/baseline.h"
#include "core/verdict.h"

namespace cutegen {

struct CertifiedMode {
  std::string mode;  // "cold", "warm", "graph", "call"
  double time_ns = 0, low_ns = 0, high_ns = 0;
  std::vector<PairedRatio> against;
};

// One of several weighted shapes.
struct CertifiedShape {
  std::string shape;
  double weight = 1, floor_ns = 0;
  std::vector<CertifiedMode> modes = {};
};

// How exact a baseline is that the program was compared with.
struct CertifiedBaseline {
  std::string kind;
  BaselineAccuracy accuracy;
};

struct Certificate {
  std::string program_id, task_id, shape;
  std::string gpu, uuid, driver, torch;
  double floor_ns = 0;
  std::string bound_by;
  int processes = 0;
  double apart = 0;  // cold: the largest relative difference of a ratio between two processes
  std::vector<CertifiedMode> modes;
  std::vector<std::string> missing;  // "compile-max: ..." why a baseline or a mode is not there
  SandboxGrade sandbox;
  Nanoseconds elapsed{0};
  std::vector<CertifiedShape> shapes = {};        // empty: the official one alone
  std::vector<CertifiedBaseline> baselines = {};  // those that were opened
  std::string cudnn = {};                         // "9.10.2"; empty: not known
  // While the program's runs were timed: the median of the blocks' medians, and the least.
  std::optional<double> sm_clock_hz = {}, sm_clock_least_hz = {};
  std::optional<double> memory_clock_hz = {};  // at the end of the last block
};

[[nodiscard]] const BaselineAccuracy* accuracy_of(const Certificate& certificate,
                                                  const std::string& kind);
// The ratio of a mode against the fastest baseline there; null where there is none.
[[nodiscard]] const PairedRatio* hardest(const CertifiedMode& mode);
[[nodiscard]] Json to_json(const Certificate& certificate);
[[nodiscard]] Result<Certificate> certificate_from_json(const Json& json);

}  // namespace cutegen
