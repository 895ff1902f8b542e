// SPDX-License-Identifier: Apache-2.0
// RunView: the state of a run, folded from its events, for the loop, the reports and the command
// line.
//
// Contract: apply() folds one event and fails only on data it cannot read. Candidates are in the
// order of their proposal. The view contains only what the events say.
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
  // Set if no program was correct and all verdicts have the same status.
  std::optional<Status> all_verdicts;
};

// Where an imported verdict comes from (engine/exchange/import_verdicts.h).
struct ImportedFrom {
  std::string entry, entry_sha256;
  std::string device;                // "NVIDIA H200 (cuda:0, driver 580.159.04)"
  Origin origin = Origin::measured;  // origin of the figures on that machine
};

struct RunStep {
  Candidate candidate;
  std::optional<Verdict> verdict;  // the last one; a retry replaces an aborted one
  int attempts = 0;                // finished evaluations of this candidate, including aborted ones
  Decision decision = Decision::open;
  std::string reason;      // of the decision
  int64_t elapsed_ms = 0;  // time spent on its evaluations
  double usd = 0;          // dollars spent on models since the previous step
  int64_t clock_ms = 0;    // the run's clock at the step's last event
  // For a draft: how many answers the run had when the model made it.
  std::optional<int64_t> drafted;
  // Set if the step was imported; its times come from that device.
  std::optional<ImportedFrom> imported;
  std::optional<double> time_ns() const;
  // Adds the result of one more evaluation.
  void take(Verdict judged, int64_t took_ms);
};

// What a run's model calls cost.
struct ModelCost {
  int64_t calls = 0, input = 0, cached = 0, output = 0;
  double usd = 0;
  bool unpriced = false;  // some call had no known price
  int64_t elapsed_ms = 0;
  // `call_end`: the data of an event call_ended.
  void add(const Json& call_end);
};

// The best program's profile, made at the end of a run, or why there is none.
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
  // A deque, because references to steps must stay valid when it grows.
  std::deque<RunStep> steps;
  std::string best;             // id of the incumbent, or empty
  std::vector<TestCase> tests;  // proposed tests that are in use
  std::optional<BestProfile> profiled;
  std::string certifying;  // the candidate whose certificate was started and is not finished
  std::optional<BestCertificate> certified;
  std::optional<double> first_ns;  // time of the first accepted candidate
  int64_t evaluations = 0;         // finished evaluations, without aborted ones
  int64_t answers = 0;             // from proposers
  int64_t reasks = 0;              // how often the engine asked a model again
  int64_t tool_calls = 0;          // by models
  ModelCost models;
  int64_t clock_ms = 0;  // time spent, without pauses between sessions
  int resumes = 0;
  std::optional<std::string> finished;  // the reason
  bool interrupted = false;

  Result<void> apply(const Event& event);
  const RunStep* find(const std::string& candidate) const;
  const RunStep* incumbent() const { return find(best); }
  // The incumbent's speedup over the fastest baseline in the task's math mode.
  std::optional<BaselineGain> gain() const;
  // The speedup over the first correct program, and the ratio to the floor. An imported step has no
  // over_first(), and its over_floor() uses its own device's floor.
  std::optional<double> over_first(const RunStep& step) const;
  std::optional<double> over_floor(const RunStep& step) const;
  // The incumbent's profile and certificate; null if there is none.
  const Profile* best_profile() const;
  const Certificate* best_certificate() const;
  // Whether the candidate is a draft for the question that is still open.
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

  double told_usd_ = 0;  // the model cost that earlier steps already contain
};

// What over_first() compares with: "the first correct program", "the source kernel".
const char* first_name(const RunView& view);
Result<RunView> view_run(const std::vector<Event>& events);
RunResult outcome_of(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
