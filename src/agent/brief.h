// SPDX-License-Identifier: Apache-2.0
// The content of a prompt: the task (the same in all questions of a run) and the question.
//
// Contract: plain values. The engine fills them from the run's events. Pointers must outlive the
// call.
//
// Example: TaskBrief brief{task, gpu, "sim:h200", floor_ns, "memory", "cute"};
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "core/device_name.h"
#include "core/role.h"
#include "core/task.h"
#include "core/verdict.h"
#include "gpu/spec.h"

namespace cutegen::agent {

struct TaskBrief {
  Task task;
  GpuSpec gpu;
  DeviceName device;
  double floor_ns = 0;
  RooflineBound bound_by = RooflineBound::memory;
  Dialect dialect = Dialect::cute;
  double reachable_ns = 0, roofline_ns = 0;  // 0: not known
};

// One earlier candidate, for the history.
struct Attempt {
  std::string id, parent, summary;
  Status status = Status::aborted;
  std::string headline;  // why the attempt failed
  std::optional<double> time_ns;
  bool kept = false;
};

struct Question {
  Role role = Role::coder;
  Purpose purpose = Purpose::none;
  Stage stage = Stage::none;           // for improvements
  const Candidate* subject = nullptr;  // the program to change
  // An earlier program, if the prompt may show the subject as changes to it.
  const Candidate* base = nullptr;
  const Verdict* verdict = nullptr;  // the subject's
  std::vector<Attempt> history;      // oldest first, including the subject
  std::string approach, advice;
  std::string reading;    // the profiler role's answer about the subject
  std::string family;     // the kind of change that a planner shall suggest
  bool grounded = false;  // the coder may change only the spans in the advice (agent/grounded.h)
  // The run's best program, if the question may show it.
  std::string best;
  std::optional<double> best_ns = {};
  // For a first program: a correct program of another approach.
  const Candidate* other = nullptr;
  bool profile = false;  // the prompt may show figures of the profile
  int repair = 0;        // 1 for the first repair in a row, 2 for the next, ...
  int approaches = 1;    // number of approaches that a planner must give
  // The proposed tests in use, one line each.
  std::vector<std::string> tests = {};
};

}  // namespace cutegen::agent
