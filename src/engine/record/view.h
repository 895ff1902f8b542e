// SPDX-License-Identifier: Apache-2.0
// RunView: the state of a run, computed from its events. The run loop, the reports and the command
// line use it.
//
// Contract: apply() updates the state by one event. It fails only if it cannot read the event's
// data. Candidates are in the order in which they were proposed. The state depends only on the
// events.
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
  // The status of all verdicts, if no program was correct and all verdicts have the same status.
  std::optional<Status> all_verdicts;
};

// The source of an imported verdict (engine/exchange/import_verdicts.h).
struct ImportedFrom {
  std::string entry, entry_sha256;
  std::string device;                // such as "NVIDIA H200 (cuda:0, driver 580.159.04)"
  Origin origin = Origin::measured;  // origin of the figures on that machine
};

struct RunStep {
  Candidate candidate;
  std::optional<Verdict> verdict;  // the newest verdict; a retry replaces an aborted verdict
  int attempts = 0;  // number of evaluations of this candidate, including aborted ones
  Decision decision = Decision::open;
  std::string reason;      // why the candidate was accepted or rejected
  int64_t elapsed_ms = 0;  // time that its evaluations took
  double usd = 0;          // dollars spent on models since the previous step
  int64_t clock_ms = 0;    // the run's clock at the step's last event
  // For a draft: the number of earlier answers in the run, which identifies the draft's question.
  std::optional<int64_t> drafted;
  // Set if `cutegen import` added the step. Its times then come from imported->device.
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
  // Adds one call. `call_end`: the data of its event `call_ended`.
  void add(const Json& call_end);
};

// The profile of the best program at the end of a run, or in `why` the reason for its absence.
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
  // A deque, because references to its elements must remain valid when it grows.
  std::deque<RunStep> steps;
  std::string best;             // id of the incumbent, or empty
  std::vector<TestCase> tests;  // tests that a model proposed and evaluations use
  std::optional<BestProfile> profiled;
  std::string certifying;  // the candidate whose certification has begun but not ended
  std::optional<BestCertificate> certified;
  std::optional<double> first_ns;  // time of the first accepted candidate
  int64_t evaluations = 0;         // number of finished evaluations, without aborted ones
  int64_t answers = 0;             // from proposers
  int64_t reasks = 0;              // how often the engine asked a model again
  int64_t tool_calls = 0;          // by models
  ModelCost models;
  int64_t clock_ms = 0;  // time that the run has used, without pauses between processes
  int resumes = 0;
  std::optional<std::string> finished;  // the reason
  bool interrupted = false;

  Result<void> apply(const Event& event);
  const RunStep* find(const std::string& candidate) const;
  const RunStep* incumbent() const { return find(best); }
  // The incumbent's speedup over the fastest baseline that is as precise as the task's math mode
  // requires.
  std::optional<BaselineGain> gain() const;
  // over_first(): the step's speedup over the first correct program; an imported step has none.
  // over_floor(): the step's time divided by the floor; an imported step uses its own device's
  // floor.
  std::optional<double> over_first(const RunStep& step) const;
  std::optional<double> over_floor(const RunStep& step) const;
  // The incumbent's profile and certificate, or null.
  const Profile* best_profile() const;
  const Certificate* best_certificate() const;
  // Whether the step is a draft for a question that has no answer yet.
  bool is_open_draft(const RunStep& step) const { return step.drafted == answers; }
  // The id of the next candidate.
  std::string next_id() const { return "c" + std::to_string(steps.size() + 1); }

 private:
  Result<RunStep*> step_of(const Event& event, const std::string& candidate);
  Result<void> on_answered(const Event& event);
  void add_step(Candidate candidate, std::optional<int64_t> drafted);
  Result<void> on_evaluated(const Event& event);
  Result<void> on_decided(const Event& event);
  Result<void> on_imported(const Json& data, const std::string& where);
  Result<void> apply_end(const Event& event);

  double told_usd_ = 0;  // the part of models.usd that RunStep::usd of earlier steps contains
};

// Names the program that over_first() compares with: "the first correct program" or "the source
// kernel".
const char* first_name(const RunView& view);
Result<RunView> view_run(const std::vector<Event>& events);
RunResult outcome_of(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
