// SPDX-License-Identifier: Apache-2.0
// Certificate: a program's speedups over its baselines, measured in fresh processes.
//
// Contract: all times are measured on a GPU, at the official shape (the sizes in the task file). If
// the task has several weighted shapes, `modes` contains weighted geometric means over the shapes,
// and `shapes` contains the figures of each shape. In each round, the evaluator times a short block
// of runs of the program and of every baseline, in random order. Each ratio (baseline time /
// program time) is the median over the rounds of all processes, with a 95% interval. The file
// core/time_mode.h explains the modes. JSON form: schema cutegen.certificate.v1.
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

// A baseline against which the evaluator timed the program, and the baseline's accuracy.
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
  // largest relative difference between two processes' ratios in the mode `cold`
  double apart = 0;
  std::vector<CertifiedMode> modes;
  std::vector<std::string> missing;  // why a baseline or a mode is missing: "compile-max: ..."
  SandboxGrade sandbox;
  Nanoseconds elapsed{0};
  std::vector<CertifiedShape> shapes = {};        // empty if only the official shape was timed
  std::vector<CertifiedBaseline> baselines = {};  // the baselines that ran
  std::string cudnn = {};                         // version "9.10.2"; empty if unknown
  // Median and minimum SM clock over the blocks of the program's timed runs; each block contributes
  // its median clock.
  std::optional<double> sm_clock_hz = {}, sm_clock_least_hz = {};
  std::optional<double> memory_clock_hz = {};  // memory clock after the last block of runs
};

const BaselineAccuracy* accuracy_of(const Certificate& certificate, const std::string& kind);
// Returns the ratio for the fastest baseline in this mode, or null if there are no baselines.
const PairedRatio* hardest(const CertifiedMode& mode);
void fields(Fields& v, Certificate& certificate);

}  // namespace cutegen
