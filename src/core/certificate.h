// SPDX-License-Identifier: Apache-2.0
// Certificate: a program's speedups over its baselines, measured in fresh processes.
//
// Contract: holds `measured` figures only, at the official shape. If the task has several weighted
// shapes, `modes` holds weighted geometric means and `shapes` the figures of each shape. The
// program and the baselines take turns in rounds; each ratio is the median over the rounds of all
// processes, with its 95% interval. Modes: cold (other data in the L2), warm, graph (as one CUDA
// graph, cold), call (host time from the call to its end, cold). JSON form: schema
// cutegen.certificate.v1.
//
// Example: for (const CertifiedMode& m : c.modes) for (const PairedRatio& p : m.against) use(p);
#pragma once

#include "core/baseline.h"
#include "core/time_mode.h"
#include "core/verdict.h"

namespace cutegen {

struct CertifiedMode {
  TimeMode mode = TimeMode::cold;
  double time_ns = 0, low_ns = 0, high_ns = 0;
  std::vector<PairedRatio> against;
};

// The figures at one shape, if the task has several weighted shapes.
struct CertifiedShape {
  std::string shape;
  double weight = 1, floor_ns = 0;
  std::vector<CertifiedMode> modes = {};
};

// The accuracy of a baseline that the program was compared with.
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
  double apart = 0;  // largest relative difference between two processes' ratios in mode cold
  std::vector<CertifiedMode> modes;
  std::vector<std::string> missing;  // why a baseline or a mode is missing: "compile-max: ..."
  SandboxGrade sandbox;
  Nanoseconds elapsed{0};
  std::vector<CertifiedShape> shapes = {};        // empty: the official shape only
  std::vector<CertifiedBaseline> baselines = {};  // the baselines that could be opened
  std::string cudnn = {};                         // "9.10.2"; empty: unknown
  // The SM clock during the program's timed runs: the median and the lowest of the blocks' medians.
  std::optional<double> sm_clock_hz = {}, sm_clock_least_hz = {};
  std::optional<double> memory_clock_hz = {};  // the memory clock at the end of the last block
};

const BaselineAccuracy* accuracy_of(const Certificate& certificate, const std::string& kind);
// The mode's ratio against its fastest baseline; null if there is none.
const PairedRatio* hardest(const CertifiedMode& mode);
void fields(Fields& v, Certificate& certificate);

}  // namespace cutegen
