// SPDX-License-Identifier: Apache-2.0
// Strategy: the policy that spends a run's budget. It is a deterministic state machine.
//
// Contract: apply(event) folds one journal event. next() returns the actions that follow from the
// state, each exactly once (and again after `resumed` if no event has completed it). A strategy has
// no access to a clock, randomness, a model or the evaluator, so the same events always give the
// same actions. resume and --replay rely on that. Time enters as `clock_ms` in events.
//
// Example:
//   auto s = make_strategy(StrategyKind::cutegen, settings); s->apply(opened);
//   for (auto& a : s->next()) run(a);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/candidate.h"
#include "core/role.h"
#include "core/test_case.h"
#include "core/verdict.h"

namespace cutegen::search {

using cutegen::to_json;
using cutegen::to_string;

struct Ask {
  Role role = Role::coder;
  Json context;  // what the role needs: purpose, parent candidate id, stage, advice, ...
};
struct Evaluate {
  std::string candidate;  // id of a proposed candidate
  Rung up_to = Rung::timing;
  bool profile = false;
  std::vector<TestCase> tests = {};  // proposed tests, in addition to the evaluator's own
};
struct Accept {
  std::string candidate;
  std::string reason;
};
struct Reject {
  std::string candidate;
  std::string reason;
};
struct Finish {
  // "within 3% of the reachable bound", "at the floor", "plateau", "budget: evaluations", ...
  std::string reason;
  std::string best;  // candidate id or empty
};
using Action = std::variant<Ask, Evaluate, Accept, Reject, Finish>;

// The outcome of a question, as the data of `answered` names it.
enum class Outcome { proposed, advised, unusable, nothing };
Names<Outcome> enum_names(Outcome);
// Returns `nothing` for an unknown name.
Outcome outcome_of(const Json& answered);

enum class StrategyKind { cutegen, cudaforge, stark, astra, astra_single, best_of_n };
Names<StrategyKind> enum_names(StrategyKind);
Result<StrategyKind> strategy_from(const std::string& name);

struct Budget {
  int64_t evaluations = 40;
  double minutes = 0;  // 0: no limit; events carry the time
};
enum class Start { scratch, recipe };  // recipe: starts from an expert kernel
// When questions show the figures of a profile (search/profiling.h).
enum class ProfilingMode { delayed, adaptive, from_start, never };
Names<Start> enum_names(Start);
Names<ProfilingMode> enum_names(ProfilingMode);
// The user error names `where` (the flag or the JSON field) and lists the known names.
Result<Dialect> parse_dialect(const std::string& name, const std::string& where);
Result<Start> parse_start(const std::string& name, const std::string& where);
Result<ProfilingMode> parse_profiling(const std::string& name, const std::string& where);

// For the strategy `stark`. The paper gives an epsilon of 0.3 to 0.4. It does not give the limits
// of children and the number of leaders; these are guesses. If the debugger repairs near misses at
// once, it reaches failed programs without exploration, so 0.1 is enough.
struct StarkSettings {
  uint64_t seed = 1;
  // The probability of a step from a random leaf; empty: 0.35 if `published`, else 0.1.
  std::optional<double> epsilon;
  int root_children = 5, node_children = 3, leaders = 5;
  // The changes to the paper's algorithm; `published` turns all off.
  bool near_misses = true;     // repairs a near miss at once
  bool equal_programs = true;  // evaluates no program twice
  bool bounds = true;          // models see the bounds and profiles of programs
  bool families = true;        // a bandit chooses the kind of change
  bool credit = true;          // the bandit counts repairs and failures (search/families.h)
  bool drift = true;           // continues from the newest of equally fast programs
  int starts = 2;              // correct first programs before the first change; published: 1
  bool operator==(const StarkSettings&) const = default;
};

// For strategies that ask a model.
struct AgentSettings {
  Dialect dialect = Dialect::cute;
  Start start = Start::scratch;
  ProfilingMode profiling = ProfilingMode::adaptive;
  // Number of short lines of work; after them, the best one continues.
  int chains = 2;
  int64_t chain_evaluations = 0;  // evaluations of each line; 0: the lines share half of the budget
  bool planner = true;            // whether a planner first names an approach for each line
  bool judge = true;              // whether a judge diagnoses the program before the second repair
  int fixes = 3;                  // the most repairs in a row of a change to a correct program
  int rounds = 10;                // rounds of `cudaforge`
  // Programs after the first that `astra` proposes; empty: 5 if `published`, else 10.
  std::optional<int> astra_rounds = {};
  bool profiler = true;    // `astra` asks a profiler about each correct program
  bool published = false;  // `cudaforge`, `stark` and `astra` as published, defects included
  StarkSettings stark;
};
struct StrategySettings {
  Budget budget;
  int plateau = 8;         // candidates in a row without a gain that end the search
  double min_gain = 0.01;  // the smallest share of the time that counts as a gain
  // The search on a memory-bound task stops within this factor of the reachable bound (a copy of
  // the least bytes). 0: never.
  double reach_ratio = 1.03;
  // Any search stops within this factor of the floor. Journals of policy 2 and earlier have 1.05
  // and no reach_ratio: their floor is the roofline.
  double floor_ratio = 1;
  int repairs = 6;                      // the most repairs while no program is correct
  int retries = 2;                      // retries of an aborted evaluation
  std::optional<AgentSettings> agents;  // empty: recipes propose, without a model
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual void apply(const Event& event) = 0;
  virtual std::vector<Action> next() = 0;
};

// The tools that a strategy allows. `cudaforge` and `astra` may only compile, because they count
// evaluations as rounds. In their published forms, they allow no tools. `stark` and `best-of-n`
// never do.
enum class ToolScope { none, compile, all };
ToolScope tool_scope(StrategyKind strategy, const StrategySettings& settings);
Result<std::unique_ptr<Strategy>> make_strategy(StrategyKind kind,
                                                const StrategySettings& settings);
// The event that records an action ("asked", "evaluation_started", "accepted", "rejected",
// "finished"): its type and its data. describe() gives the action as one line for messages.
EventType event_type(const Action& action);
Json event_data(const Action& action);
std::string describe(const Action& action);
// The JSON form of an action: its event_data() with the kind, {"action": "ask", ...}.
void fields(Fields& v, Action& action);
void fields(Fields& v, Ask& action);
void fields(Fields& v, Evaluate& action);
void fields(Fields& v, Accept& action);
void fields(Fields& v, Reject& action);
void fields(Fields& v, Finish& action);
void fields(Fields& v, StarkSettings& settings);
void fields(Fields& v, StrategySettings& settings);

}  // namespace cutegen::search
