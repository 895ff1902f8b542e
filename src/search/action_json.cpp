// SPDX-License-Identifier: Apache-2.0
#include "core/codec.h"
#include "search/machine.h"
#include "search/strategy.h"

namespace cutegen::search {
namespace {

constexpr codec::Names<Outcome, 4> kOutcomes{{{Outcome::proposed, "proposed"},
                                              {Outcome::advised, "advised"},
                                              {Outcome::unusable, "unusable"},
                                              {Outcome::nothing, "nothing"}}};

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

Result<Action> read_action(const std::string& kind, ObjectReader& r) {
  if (kind == "ask") {
    Ask a;
    CG_TRY(std::string role, r.string("role"));
    CG_TRY(a.role, parse_role(role, r.place("role")));
    CG_TRY(a.context, r.object("context"));
    return a;
  }
  if (kind == "evaluate") {
    Evaluate a;
    CG_TRY(a.candidate, r.string("candidate"));
    CG_TRY(std::string rung, r.string("up_to"));
    CG_TRY(a.up_to, rung_from(rung));
    CG_TRY(a.profile, r.boolean("profile"));
    return a;
  }
  if (kind == "accept" || kind == "reject") {
    Accept a;
    CG_TRY(a.candidate, r.string("candidate"));
    CG_TRY(a.reason, r.string("reason"));
    if (kind == "accept") return a;
    return Reject{a.candidate, a.reason};
  }
  if (kind == "finish") {
    Finish a;
    CG_TRY(a.reason, r.string("reason"));
    CG_TRY(a.best, r.string("best"));
    return a;
  }
  return user_error("unknown action '" + kind + "'", r.place("action"));
}

}  // namespace

EventType event_type(const Action& action) {
  return std::visit(Overload{[](const Ask&) { return EventType::asked; },
                             [](const Evaluate&) { return EventType::evaluation_started; },
                             [](const Accept&) { return EventType::accepted; },
                             [](const Reject&) { return EventType::rejected; },
                             [](const Finish&) { return EventType::finished; }},
                    action);
}

const char* to_string(Outcome outcome) {
  return codec::name_of(kOutcomes, outcome);
}

Outcome outcome_of(const Json& answered) {
  const std::string name = text_at(answered, "outcome");
  for (const auto& [outcome, known] : kOutcomes)
    if (name == known) return outcome;
  return Outcome::nothing;
}

Json event_data(const Action& action) {
  return std::visit(
      Overload{
          [](const Ask& a) { return Json{{"role", to_string(a.role)}, {"context", a.context}}; },
          [](const Evaluate& a) {
            return Json{
                {"candidate", a.candidate}, {"up_to", to_string(a.up_to)}, {"profile", a.profile}};
          },
          [](const Accept& a) { return Json{{"candidate", a.candidate}, {"reason", a.reason}}; },
          [](const Reject& a) { return Json{{"candidate", a.candidate}, {"reason", a.reason}}; },
          [](const Finish& a) { return Json{{"reason", a.reason}, {"best", a.best}}; }},
      action);
}

std::string describe(const Action& action) {
  return std::string(to_string(event_type(action))) + " " + dump_json(event_data(action));
}

Json to_json(const Action& action) {
  static constexpr const char* kKinds[] = {"ask", "evaluate", "accept", "reject", "finish"};
  Json out{{"action", kKinds[action.index()]}};
  out.update(event_data(action));
  return out;
}

Result<Action> action_from_json(const Json& json) {
  ObjectReader r(json, "action");
  CG_TRY(std::string kind, r.string("action"));
  CG_TRY(Action action, read_action(kind, r));
  CG_CHECK(r.finish());
  return action;
}

namespace {

Json agents_json(const AgentSettings& a) {
  return Json{{"dialect", to_string(a.dialect)},
              {"start", to_string(a.start)},
              {"profiling", to_string(a.profiling)},
              {"chains", a.chains},
              {"chain_evaluations", a.chain_evaluations},
              {"planner", a.planner},
              {"judge", a.judge},
              {"fixes", a.fixes},
              {"rounds", a.rounds},
              {"published", a.published}};
}

Result<int> count(ObjectReader& r, const std::string& key) {
  CG_TRY(int64_t value, r.integer(key));
  if (value < 0 || value > 1'000'000)
    return user_error("a count of the strategy is out of range", r.place(key));
  return static_cast<int>(value);
}

Result<AgentSettings> agents_from_json(const Json& json) {
  AgentSettings a;
  ObjectReader r(json, "search/agents");
  CG_TRY(std::string dialect, r.string("dialect"));
  CG_TRY(a.dialect, parse_dialect(dialect, r.place("dialect")));
  CG_TRY(std::string start, r.string("start"));
  CG_TRY(a.start, parse_start(start, r.place("start")));
  CG_TRY(std::string profiling, r.string("profiling"));
  CG_TRY(a.profiling, parse_profiling(profiling, r.place("profiling")));
  CG_TRY(a.chains, count(r, "chains"));
  CG_TRY(a.chain_evaluations, r.integer("chain_evaluations"));
  CG_TRY(a.planner, r.boolean("planner"));
  CG_TRY(a.judge, r.boolean("judge"));
  CG_TRY(a.fixes, count(r, "fixes"));
  CG_TRY(a.rounds, count(r, "rounds"));
  CG_TRY(a.published, r.boolean("published"));
  CG_CHECK(r.finish());
  return a;
}

}  // namespace

Json to_json(const StrategySettings& s) {
  Json out{{"evaluations", s.budget.evaluations},
           {"minutes", s.budget.minutes},
           {"plateau", s.plateau},
           {"min_gain", s.min_gain},
           {"floor_ratio", s.floor_ratio},
           {"reach_ratio", s.reach_ratio},
           {"repairs", s.repairs},
           {"retries", s.retries}};
  if (s.agents) out["agents"] = agents_json(*s.agents);
  return out;
}

Result<StrategySettings> strategy_settings_from_json(const Json& json) {
  StrategySettings s;
  ObjectReader r(json, "search");
  CG_TRY(s.budget.evaluations, r.integer("evaluations"));
  CG_TRY(s.budget.minutes, r.number("minutes"));
  CG_TRY(s.plateau, count(r, "plateau"));
  CG_TRY(s.min_gain, r.number("min_gain"));
  CG_TRY(s.floor_ratio, r.number("floor_ratio"));
  CG_TRY(s.reach_ratio, r.number_or("reach_ratio", 0));
  CG_TRY(s.repairs, count(r, "repairs"));
  CG_TRY(s.retries, count(r, "retries"));
  if (r.has("agents")) {
    CG_TRY(Json agents, r.object("agents"));
    CG_TRY(s.agents, agents_from_json(agents));
  }
  CG_CHECK(r.finish());
  return s;
}

}  // namespace cutegen::search
