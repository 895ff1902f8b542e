// SPDX-License-Identifier: Apache-2.0
// The data of a prompt: a TaskBrief, which is the same for all questions of a run, and a Question,
// which describes one question to a model.
//
// Contract: the engine fills TaskBrief and Question from the run's events. A Question has pointers
// to candidates and verdicts, which must outlive the Question.
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

// An earlier candidate in the history that a question shows.
struct Attempt {
  std::string id, parent, summary;
  Status status = Status::aborted;
  std::string headline;  // why the candidate failed
  std::optional<double> time_ns;
  bool kept = false;
};

struct Question {
  Role role = Role::coder;
  Purpose purpose = Purpose::none;
  Stage stage = Stage::none;  // for improvements
  // The program that the question is about (to change, repair, describe or diagnose), or null.
  const Candidate* subject = nullptr;
  // An earlier program or null; the prompt may show `subject` as changes to this program.
  const Candidate* base = nullptr;
  const Verdict* verdict = nullptr;  // the subject's
  std::vector<Attempt> history;      // all attempts from old to new, including `subject`
  std::string approach, advice;
  std::string reading;  // what a model in the role `profiler` wrote about `subject`
  std::string family;   // the kind of change that a planner should suggest
  // True if the model in the role `coder` may change only the spans of text that `advice` names
  // (agent/grounded.h).
  bool grounded = false;
  // The id of the run's best program; empty if the question may not mention this program.
  std::string best;
  std::optional<double> best_ns = {};
  // A correct program that follows another approach, if the question asks for a first program;
  // otherwise, or if there is no such program, null.
  const Candidate* other = nullptr;
  bool profile = false;  // whether the prompt may show figures of the profile
  int repair = 0;        // number of this repair in a series of repairs, from 1
  int approaches = 1;    // how many approaches a planner must name
  // One line for each test that a model proposed and that the evaluator uses.
  std::vector<std::string> tests = {};
};

}  // namespace cutegen::agent
