// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "search/machine.h"
#include "search/strategy.h"

namespace cutegen::search {
namespace {

constexpr FieldRule kCount = field::between(0, 1'000'000);

// Sets the values that runs used before the settings `credit`, `drift` and `starts` existed.
StarkSettings before_credit(StarkSettings s) {
  s.credit = s.drift = false;
  s.starts = 1;
  return s;
}

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

}  // namespace

void fields(Fields& v, Ask& a) {
  v("role", a.role);
  v("context", a.context, field::object);
}

void fields(Fields& v, Evaluate& a) {
  v("candidate", a.candidate);
  v.by_name("up_to", a.up_to, rung_from);
  v("profile", a.profile);
  v("tests", a.tests, field::if_set + field::most(kMostTestCases));
}

void fields(Fields& v, Accept& a) {
  v("candidate", a.candidate);
  v("reason", a.reason);
}

void fields(Fields& v, Reject& a) {
  v("candidate", a.candidate);
  v("reason", a.reason);
}

void fields(Fields& v, Finish& a) {
  v("reason", a.reason);
  v("best", a.best);
}

void fields(Fields& v, Action& action) {
  static const std::pair<const char*, Action> kKinds[] = {{"ask", Ask{}},
                                                          {"evaluate", Evaluate{}},
                                                          {"accept", Accept{}},
                                                          {"reject", Reject{}},
                                                          {"finish", Finish{}}};
  v.document("action");
  std::string kind = kKinds[action.index()].first;
  v("action", kind);
  const auto* known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const auto& k) { return kind == k.first; });
  v.check(known != std::end(kKinds), "action", "unknown action '" + kind + "'");
  if (v.reading() && known != std::end(kKinds)) action = known->second;
  std::visit([&](auto& a) { fields(v, a); }, action);
}

EventType event_type(const Action& action) {
  return std::visit(Overload{[](const Ask&) { return EventType::asked; },
                             [](const Evaluate&) { return EventType::evaluation_started; },
                             [](const Accept&) { return EventType::accepted; },
                             [](const Reject&) { return EventType::rejected; },
                             [](const Finish&) { return EventType::finished; }},
                    action);
}

Names<Outcome> enum_names(Outcome) {
  static constexpr Name<Outcome> names[] = {{Outcome::proposed, "proposed"},
                                            {Outcome::advised, "advised"},
                                            {Outcome::unusable, "unusable"},
                                            {Outcome::nothing, "nothing"}};
  return names;
}

Outcome outcome_of(const Json& answered) {
  return from_name<Outcome>(text_at(answered, "outcome"), "outcome").value_or(Outcome::nothing);
}

Json event_data(const Action& action) {
  return std::visit([](const auto& a) { return to_json(a); }, action);
}

std::string describe(const Action& action) {
  return std::string(to_string(event_type(action))) + " " + dump_json(event_data(action));
}

void fields(Fields& v, StarkSettings& s) {
  v("seed", s.seed);
  v("epsilon", s.epsilon);
  v("root_children", s.root_children, kCount);
  v("node_children", s.node_children, kCount);
  v("leaders", s.leaders, kCount);
  v("near_misses", s.near_misses);
  v("equal_programs", s.equal_programs);
  v("bounds", s.bounds);
  v("families", s.families);
  if (v.reading()) s = before_credit(s);
  v("credit", s.credit, field::may_lack);
  v("drift", s.drift, field::may_lack);
  v("starts", s.starts, kCount + field::may_lack);
}

void fields(Fields& v, AgentSettings& a) {
  v("dialect", a.dialect);
  v("start", a.start);
  v("profiling", a.profiling);
  v("chains", a.chains, kCount);
  v("chain_evaluations", a.chain_evaluations);
  v("planner", a.planner);
  v("judge", a.judge);
  v("fixes", a.fixes, kCount);
  v("rounds", a.rounds, kCount);
  v("astra_rounds", a.astra_rounds, kCount);
  if (v.reading()) a.profiler = false;  // older journals lack it
  v("profiler", a.profiler, field::may_lack);
  v("published", a.published);
  if (v.reading()) a.stark = before_credit({});
  v("stark", a.stark, field::written_if(a.stark != before_credit({})));
}

void fields(Fields& v, StrategySettings& s) {
  v.document("search");
  v("evaluations", s.budget.evaluations);
  v("minutes", s.budget.minutes);
  v("plateau", s.plateau, kCount);
  v("min_gain", s.min_gain);
  v("floor_ratio", s.floor_ratio);
  if (v.reading()) s.reach_ratio = 0;  // older journals lack it
  v("reach_ratio", s.reach_ratio, field::may_lack);
  if (v.reading()) s.end_rules = 1;  // older journals lack it
  v("end_rules", s.end_rules, kCount + field::may_lack);
  v("repairs", s.repairs, kCount);
  v("retries", s.retries, kCount);
  v("agents", s.agents);
}

}  // namespace cutegen::search
