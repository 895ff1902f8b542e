// SPDX-License-Identifier: Apache-2.0
#include "search/strategy.h"

namespace cutegen {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

Result<Action> read_action(const std::string& kind, ObjectReader& r) {
  if (kind == "ask") {
    Ask a;
    CG_TRY(a.role, r.string("role"));
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

std::string event_type(const Action& action) {
  return std::visit(
      Overload{[](const Ask&) { return "asked"; },
               [](const Evaluate&) { return "evaluation_started"; },
               [](const Accept&) { return "accepted"; }, [](const Reject&) { return "rejected"; },
               [](const Finish&) { return "finished"; }},
      action);
}

Json event_data(const Action& action) {
  return std::visit(
      Overload{
          [](const Ask& a) { return Json{{"role", a.role}, {"context", a.context}}; },
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
  return event_type(action) + " " + dump_json(event_data(action));
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

Json to_json(const StrategySettings& s) {
  return Json{{"evaluations", s.budget.evaluations},
              {"minutes", s.budget.minutes},
              {"plateau", s.plateau},
              {"min_gain", s.min_gain},
              {"floor_ratio", s.floor_ratio},
              {"repairs", s.repairs},
              {"retries", s.retries}};
}

Result<StrategySettings> strategy_settings_from_json(const Json& json) {
  StrategySettings s;
  ObjectReader r(json, "search");
  CG_TRY(s.budget.evaluations, r.integer("evaluations"));
  CG_TRY(s.budget.minutes, r.number("minutes"));
  CG_TRY(int64_t plateau, r.integer("plateau"));
  CG_TRY(s.min_gain, r.number("min_gain"));
  CG_TRY(s.floor_ratio, r.number("floor_ratio"));
  CG_TRY(int64_t repairs, r.integer("repairs"));
  CG_TRY(int64_t retries, r.integer("retries"));
  CG_CHECK(r.finish());
  for (int64_t value : {plateau, repairs, retries})
    if (value < 0 || value > 1'000'000)
      return user_error("a count of the strategy is out of range", "search");
  s.plateau = static_cast<int>(plateau);
  s.repairs = static_cast<int>(repairs);
  s.retries = static_cast<int>(retries);
  return s;
}

}  // namespace cutegen
