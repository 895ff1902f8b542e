// SPDX-License-Identifier: Apache-2.0
// What a role is told: the task (the same in all questions of a run) and the question's own matter.
//
// Contract: plain values, filled by the engine from the run's events; pointers outlive the call.
//
// Example: TaskBrief brief{task, gpu, "sim:h200", floor_ns, "memory", "cute"};
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "core/task.h"
#include "core/verdict.h"
#include "gpu/spec.h"

namespace cutegen {

struct TaskBrief {
  Task task;
  GpuSpec gpu;
  std::string device;  // "sim:h200"
  double floor_ns = 0;
  std::string bound_by;
  std::string dialect = "cute";
  double reachable_ns = 0, roofline_ns = 0;  // 0: not known
};

// One earlier candidate, for the history.
struct Attempt {
  std::string id, parent, summary;
  Status status = Status::aborted;
  std::string headline;  // of a failure
  std::optional<double> time_ns;
  bool kept = false;
};

struct Question {
  std::string role;                    // "planner", "coder", "debugger", "judge"
  std::string purpose;                 // "first", "improve", "repair", "plan"
  std::string stage;                   // "structure" or "detail", for improvements
  const Candidate* subject = nullptr;  // the program to change
  const Candidate* base = nullptr;     // an earlier program that the subject is told from, if any
  const Verdict* verdict = nullptr;    // of the subject
  std::vector<Attempt> history;        // oldest first, the subject included
  std::string approach, advice;
  bool profile = false;  // figures of the profile may be shown
  int repair = 0;        // number of this repair in a row, from 1
  int approaches = 1;    // that a planner is to give
};

}  // namespace cutegen
