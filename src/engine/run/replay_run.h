// SPDX-License-Identifier: Apache-2.0
// Replays a recorded run: repeats the run's actions and questions and, on request, its evaluations.
//
// Contract: replay_with() passes the recorded events to a new strategy and proposer. The replay
// fails at the first action, question or answer that differs from the record. The function
// replay_with() starts no evaluator. The function re_evaluate_with() also judges every recorded
// candidate again, except for aborted evaluations. At the first difference, re_evaluate_with()
// stops and returns the difference (`divergence`) as a result, not as an error. A time counts as
// different if it differs by more than `tolerance`. If a recorded verdict has another policy
// version (of the judging rules) than this cutegen, re_evaluate_with() neither repeats nor compares
// it, and a remark gives the number of such verdicts. Neither replay_with() nor re_evaluate_with()
// writes to the journal.
//
// Example: CG_TRY(ReEvaluation r, re_evaluate_with(real_parts(), ctx, store, "last", {},
// observer));
//          if (r.divergence) print(r.divergence->field);
#pragma once

#include "engine/run/loop.h"
#include "engine/run/run.h"

namespace cutegen::engine {

Result<RunResult> replay_with(const Parts& parts, const Context& ctx, store::Store& store,
                              const std::string& run, RunObserver& observer);

struct ReEvaluateSettings {
  std::filesystem::path file;  // the task file; empty: the path in the record
  // Largest accepted difference of a time, as a share of the recorded time.
  double tolerance = 0.05;
};

struct ReEvaluation {
  RunResult recorded;
  int64_t events = 0, evaluations = 0;  // numbers of replayed events and repeated evaluations
  int64_t left_out = 0;                 // number of aborted evaluations, which the replay skips
  int64_t other_policy = 0;             // number of verdicts of another policy version
  double largest_change = 0;            // largest change of a time, as a share of the recorded time
  std::vector<std::string> remarks;     // such as "toolchain: recorded NVRTC 13.0, now NVRTC 13.1"
  std::optional<Divergence> divergence;
};

Result<ReEvaluation> re_evaluate_with(const Parts& parts, const Context& ctx, store::Store& store,
                                      const std::string& run, const ReEvaluateSettings& settings,
                                      RunObserver& observer);
Json to_json(const ReEvaluation& result);
// Returns text such as "step c3, event 17, verdict/time_ns: recorded 12.1 us, now 14.0 us".
std::string to_text(const Divergence& divergence);

}  // namespace cutegen::engine
