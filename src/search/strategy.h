// SPDX-License-Identifier: Apache-2.0
// Strategy: the policy that decides what a run does next, as a deterministic state machine.
//
// Contract: apply(event) updates the strategy's state with one event of the journal. The function
// next() returns the actions that the engine must execute next. It returns each action once, and
// again after the event `resumed` if no event has completed the action. A strategy has no access to
// a clock, a random source, a model or the evaluator, so the same events always lead to the same
// actions; `resume` and `--replay` rely on this. A strategy learns the time from the field
// `clock_ms` of events.
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
  Json context;  // facts for the role: purpose, parent's id, stage, advice, ...
};
struct Evaluate {
  std::string candidate;  // id of a proposed candidate
  Rung up_to = Rung::timing;
  bool profile = false;
  std::vector<TestCase> tests = {};  // tests that a model proposed, besides the evaluator's
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
  // For example "within 3% of the reachable bound", "at the floor" or "budget: evaluations".
  std::string reason;
  std::string best;  // id of the best candidate; empty without a correct one
};
using Action = std::variant<Ask, Evaluate, Accept, Reject, Finish>;

// Says how a question ended. The event `answered` contains the name of the Outcome.
enum class Outcome { proposed, advised, unusable, nothing };
Names<Outcome> enum_names(Outcome);
// Reads the Outcome from the data of the event `answered`; returns `nothing` for an unknown name.
Outcome outcome_of(const Json& answered);

enum class StrategyKind { cutegen, cudaforge, stark, astra, astra_single, best_of_n };
Names<StrategyKind> enum_names(StrategyKind);
Result<StrategyKind> strategy_from(const std::string& name);

struct Budget {
  int64_t evaluations = 40;
  double minutes = 0;  // 0 means no limit
};
// Says whether the model writes the first program, or the run starts from a recipe (an expert
// kernel).
enum class Start { scratch, recipe };
// Says when questions to the model show profiles (search/profiling.h).
enum class ProfilingMode { delayed, adaptive, from_start, never };
Names<Start> enum_names(Start);
Names<ProfilingMode> enum_names(ProfilingMode);
// If the name is unknown, parse_dialect(), parse_start() and parse_profiling() return a user error
// that names `where` (the flag or the JSON field) and lists the known names.
Result<Dialect> parse_dialect(const std::string& name, const std::string& where);
Result<Start> parse_start(const std::string& name, const std::string& where);
Result<ProfilingMode> parse_profiling(const std::string& name, const std::string& where);

// Contains the settings of the strategy `stark`. The paper of `stark` gives an epsilon of 0.3 to
// 0.4. The paper does not give root_children, node_children and leaders, so our defaults are
// guesses. With `near_misses`, an epsilon of 0.1 is enough, because the search then repairs failed
// programs without a random draw.
struct StarkSettings {
  uint64_t seed = 1;
  // The probability that a step selects a random leaf; if empty, 0.35 with `published`, else 0.1.
  std::optional<double> epsilon;
  // The largest numbers of children of the root and of any other node. `leaders`: how many of the
  // run's fastest programs a planner sees.
  int root_children = 5, node_children = 3, leaders = 5;
  // Each of the next fields turns on one change to the paper's algorithm; `published` turns all of
  // these changes off.
  bool near_misses = true;     // whether to repair almost correct programs at once
  bool equal_programs = true;  // whether to skip programs that were already evaluated
  bool bounds = true;          // whether questions to the model show bounds and profiles
  bool families = true;        // whether a bandit chooses the kind of change (families.h)
  bool credit = true;          // whether the bandit credits repairs and discounts failures
  bool drift = true;           // whether to prefer the newest of equally fast programs
  // how many first programs must be correct before the search changes one of them
  int starts = 2;
  bool operator==(const StarkSettings&) const = default;
};

// Contains the settings of the strategies that ask a model.
struct AgentSettings {
  Dialect dialect = Dialect::cute;
  Start start = Start::scratch;
  ProfilingMode profiling = ProfilingMode::adaptive;
  // The number of lines (short searches, search/lines.h) of the strategy `cutegen` before the best
  // line continues.
  int chains = 2;
  // The number of evaluations for each line (short search). With 0, lines share half of the budget.
  int64_t chain_evaluations = 0;
  bool planner = true;  // whether a planner names an approach for each line first
  bool judge = true;    // whether a judge diagnoses the program before the second repair
  // limit of repairs of a changed program that fails, if the line (for `astra`, the run) already
  // has a correct program
  int fixes = 3;
  int rounds = 10;  // number of rounds of `cudaforge`
  // How many programs `astra` proposes after the first; if empty, 5 with `published`, else 10.
  std::optional<int> astra_rounds = {};
  bool profiler = true;    // whether `astra` asks a profiler about each correct program
  bool published = false;  // whether cudaforge, stark and astra follow their papers exactly
  StarkSettings stark;
};
struct StrategySettings {
  Budget budget;
  int plateau = 8;  // the search ends after this many candidates in a row without a gain
  // The version of the rules that end a search. With version 1 (journals without this field), three
  // ties near the reachable bound end a search, and a launch-bound search never ends at a bound.
  int end_rules = 2;
  double min_gain = 0.01;  // the smallest saved share of the time that counts as a gain
  // If the task is memory-bound or launch-bound, the search stops when the time is at most
  // reach_ratio times the reachable bound (the time to copy the least bytes, plus a launch). The
  // value 0 disables reach_ratio.
  double reach_ratio = 1.03;
  // Every search stops when the time is at most floor_ratio times the floor (a lower bound of the
  // time). Journals from before reach_ratio existed have a floor_ratio of 1.05.
  double floor_ratio = 1;
  int repairs = 6;                      // limit of repairs while no program is correct
  int retries = 2;                      // limit of retries of an aborted evaluation
  std::optional<AgentSettings> agents;  // empty if recipes propose programs, without a model
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual void apply(const Event& event) = 0;
  virtual std::vector<Action> next() = 0;
};

// Says which tools the model may call in a strategy. In `cudaforge` and `astra`, the model may only
// compile, because these strategies count evaluations as rounds; with `published`, the model may
// call no tools. The strategies `stark` and `best-of-n` never allow tools.
enum class ToolScope { none, compile, all };
ToolScope tool_scope(StrategyKind strategy, const StrategySettings& settings);
Result<std::unique_ptr<Strategy>> make_strategy(StrategyKind kind,
                                                const StrategySettings& settings);
// event_type() and event_data() return type and data of the event that records an action ("asked",
// "evaluation_started", "accepted", "rejected", "finished"). The function describe() returns one
// line for messages.
EventType event_type(const Action& action);
Json event_data(const Action& action);
std::string describe(const Action& action);
// The JSON form of an action contains its event_data() and its kind: {"action": "ask", ...}.
void fields(Fields& v, Action& action);
void fields(Fields& v, Ask& action);
void fields(Fields& v, Evaluate& action);
void fields(Fields& v, Accept& action);
void fields(Fields& v, Reject& action);
void fields(Fields& v, Finish& action);
void fields(Fields& v, StarkSettings& settings);
void fields(Fields& v, StrategySettings& settings);

}  // namespace cutegen::search
