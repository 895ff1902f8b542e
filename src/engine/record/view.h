// SPDX-License-Identifier: Apache-2.0
// RunView: the state of a run, computed from its events. The run loop, the reports and the command
// line use RunView.
//
// Contract: apply() updates the state by one event. A call of apply() fails only if the event's
// data are unreadable. Candidates are in the order of their proposals. The state depends only on
// the events.
//
// Example: CG_TRY(RunView view, view_run(events)); for (const RunStep& s : view.steps) ...
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "engine/record/run_baselines.h"
#include "engine/record/settings.h"
#include "store/store.h"

namespace cutegen::engine {

struct RunResult {
  std::string run_id, reason;
  std::optional<Candidate> best;
  std::optional<Verdict> best_verdict;
  double floor_ns = 0;
  std::optional<double> first_ns;  // the first correct candidate's time
  int64_t evaluations = 0;
  bool interrupted = false;
  // The status that all verdicts have in common, if no program was correct.
  std::optional<Status> all_verdicts;
};

// The source of an imported verdict (engine/exchange/import_verdicts.h).
struct ImportedFrom {
  std::string entry, entry_sha256;
  std::string device;                // such as "NVIDIA H200 (cuda:0, driver 580.159.04)"
  Origin origin = Origin::measured;  // origin of the figures on this device
};

struct RunStep {
  Candidate candidate;
  std::optional<Verdict> verdict;  // the last verdict; a retry replaces an aborted verdict
  int attempts = 0;  // number of evaluations of this candidate, including aborted ones
  Decision decision = Decision::open;
  std::string reason;      // why the candidate was accepted or rejected
  int64_t elapsed_ms = 0;  // total time of the candidate's evaluations
  double usd = 0;          // dollars spent on models since the previous step
  int64_t clock_ms = 0;    // time from the run's start to the step's last event, without pauses
  // For a draft (program passed to a tool): the number of earlier answers in the run.
  std::optional<int64_t> drafted;
  // Set if `cutegen import` added the step, with times from the device imported->device.
  std::optional<ImportedFrom> imported;
  std::optional<double> time_ns() const;
  // Adds the result of one more evaluation.
  void take(Verdict judged, int64_t took_ms);
};

// The number, the tokens, the cost and the time of a run's model calls.
struct ModelCost {
  int64_t calls = 0, input = 0, cached = 0, output = 0;
  double usd = 0;
  bool unpriced = false;  // whether a call had no known price
  int64_t elapsed_ms = 0;
  // Adds one model call. `call_end`: the data of the event `call_ended`.
  void add(const Json& call_end);
};

// The profile of the best program at the end of a run; without a profile, `why` has the reason.
struct BestProfile {
  std::string candidate, why;
  std::optional<Profile> profile;
};
struct BestCertificate {
  std::string candidate, why;
  std::optional<Certificate> certificate;
};

struct RunView {
  OptimizeSettings settings;
  std::optional<eval::OpenedTask> task;
  std::optional<TaskBaselines> baselines;
  // A deque, because references to its elements must remain valid when the deque grows.
  std::deque<RunStep> steps;
  std::string best;             // id of the incumbent, or empty
  std::vector<TestCase> tests;  // tests that a model proposed and the evaluator uses
  std::optional<BestProfile> profiled;
  std::string certifying;  // the candidate whose certification has not ended
  std::optional<BestCertificate> certified;
  std::optional<double> first_ns;  // time of the first accepted candidate
  int64_t evaluations = 0;         // number of finished evaluations, without aborted ones
  int64_t answers = 0;             // from proposers
  int64_t reasks = 0;              // number of times that the engine asked a model again
  int64_t tool_calls = 0;          // by models
  ModelCost models;
  int64_t clock_ms = 0;  // time that the run has used, without pauses before resumes
  int resumes = 0;
  std::optional<std::string> finished;  // the reason
  bool interrupted = false;

  Result<void> apply(const Event& event);
  const RunStep* find(const std::string& candidate) const;
  const RunStep* incumbent() const { return find(best); }
  // Returns the incumbent's speedup over the fastest baseline with which candidates compete
  // (in_math_mode() in core/baseline.h).
  std::optional<BaselineGain> gain() const;
  // The function over_first() returns the step's speedup over the first correct program, or nullopt
  // for an imported step. The function over_floor() returns the step's time divided by the task's
  // floor (the least possible time). For an imported step, over_floor() uses the floor on the
  // device that measured the step.
  std::optional<double> over_first(const RunStep& step) const;
  std::optional<double> over_floor(const RunStep& step) const;
  // Return the incumbent's profile or certificate, or null.
  const Profile* best_profile() const;
  const Certificate* best_certificate() const;
  // Returns whether the step is a draft for a question that has no answer yet.
  bool is_open_draft(const RunStep& step) const { return step.drafted == answers; }
  // Returns the id of the next candidate.
  std::string next_id() const { return "c" + std::to_string(steps.size() + 1); }

 private:
  Result<RunStep*> step_of(const Event& event, const std::string& candidate);
  Result<void> on_answered(const Event& event);
  void add_step(Candidate candidate, std::optional<int64_t> drafted);
  Result<void> on_evaluated(const Event& event);
  Result<void> on_decided(const Event& event);
  Result<void> on_imported(const Json& data, const std::string& where);
  Result<void> apply_end(const Event& event);

  double told_usd_ = 0;  // the sum of RunStep::usd over the earlier steps
};

// Names the program with which over_first() compares a step: "the first correct program" or "the
// source kernel".
const char* first_name(const RunView& view);
// Returns the policy version of the first verdict that the rules of another version gave, or
// nullopt. Such verdicts must not be compared with new ones. Ignores aborted verdicts, which judge
// nothing.
std::optional<int> other_policy(const RunView& view);
Result<RunView> view_run(const std::vector<Event>& events);
RunResult outcome_of(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
