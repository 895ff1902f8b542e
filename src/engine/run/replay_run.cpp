// SPDX-License-Identifier: Apache-2.0
#include "engine/run/replay_run.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "engine/propose/agent_proposer.h"
#include "engine/propose/run_tools.h"
#include "engine/record/event_data.h"
#include "engine/record/step_data.h"
#include "llm/run_model.h"

namespace cutegen::engine {
namespace {

constexpr size_t kShown = 300;

// Refuses every model call, because a replay must not ask a model.
class NoCalls final : public llm::CallSink {
 public:
  Result<void> record(EventType type, const Json&) override {
    return user_error("a replay would have to ask a model (" + std::string(to_string(type)) + ")");
  }
};

// Repeats the recorded actions, questions and answers event by event.
class Replay {
 public:
  explicit Replay(const Parts& parts)
      : model_(nullptr, {}, no_calls_),
        tools_(
            [](auto&&...) -> Result<Judged> {
              return user_error("a replay would have to evaluate a draft");
            },
            no_calls_),
        walk_([this, &parts](const RunView& view) -> Result<std::unique_ptr<Proposer>> {
          if (asks_model(view.settings))
            return make_agent_proposer(model_, tools_, view.settings, *view.task);
          return parts.make_proposer(view.settings, *view.task);
        }) {}

  Result<void> step(const Event& event) {
    CG_CHECK(walk_.step(event));
    CG_CHECK(model_.fold(event.type, event.data));
    return tools_.fold(event.type, event.data);
  }

  const RunView& view() const { return walk_.view(); }
  // The divergence that made the step fail; empty if it failed for another reason.
  std::optional<Divergence> divergence(const Event& event) const {
    if (walk_.divergence()) return walk_.divergence();
    auto question = model_.difference();
    if (!question) return std::nullopt;
    return Divergence{.event = event.seq,
                      .step = "question " + std::to_string(view().answers + 1),
                      .field = "question" + question->place,
                      .recorded = question->recorded,
                      .now = question->now};
  }

 private:
  NoCalls no_calls_;
  llm::RunModel model_;
  RunTools tools_;
  Walk walk_;
};

std::string time_text(const Verdict& v) {
  return v.timing ? fmt::format("{} {}", human_ns(v.timing->time_ns), to_string(v.timing->origin))
                  : "no time";
}

std::string status_text(const Verdict& v) {
  std::string out = to_string(v.status);
  if (!v.feedback.headline.empty()) out += ": " + v.feedback.headline;
  return sanitize(out, kShown);
}

// The rung at which a program failed, or "none".
std::string rung_text(const Verdict& v) {
  for (const RungReport& r : v.rungs)
    if (r.result == RungResult::failed) return to_string(r.rung);
  return "none";
}

// The number of verdicts of each other policy version.
Result<std::map<int, int64_t>> other_policies(const std::vector<Event>& events) {
  std::map<int, int64_t> out;
  for (const Event& event : events) {
    if (event.type != EventType::evaluated) continue;
    CG_TRY(Evaluated evaluated, data_of<Evaluated>(event));
    const Verdict& v = evaluated.verdict;
    if (v.status != Status::aborted && v.policy_version != Verdict().policy_version)
      ++out[v.policy_version];
  }
  return out;
}

class ReEvaluator {
 public:
  ReEvaluator(const Parts& parts, const Context& ctx, const ReEvaluateSettings& settings,
              RunObserver& observer, ReEvaluation& result)
      : parts_(parts), ctx_(ctx), settings_(settings), observer_(observer), result_(result) {}

  // Call it before check(), with the whole record.
  Result<void> note_policies(const std::vector<Event>& events) {
    CG_TRY(auto policies, other_policies(events));
    for (const auto& [version, count] : policies)
      result_.remarks.push_back(fmt::format(
          "policy: {} verdict{} not compared, because the judging rules changed from version {} to "
          "{}",
          count, count == 1 ? " is" : "s are", version, Verdict().policy_version));
    rules_changed_ = !policies.empty();
    return {};
  }

  // The replay calls it before its own step. The evaluator must reproduce what the event says.
  Result<std::optional<Divergence>> check(const Event& event, const RunView& view) {
    event_ = event.seq;
    if (event.type == EventType::task) return open(event, view.settings);
    if (event.type == EventType::evaluation_started) return note(event);
    if (event.type == EventType::evaluated) return judge(event, view);
    return std::optional<Divergence>();
  }

 private:
  using Found = Result<std::optional<Divergence>>;

  Found differs(const std::string& field, const std::string& recorded, const std::string& now) {
    return Divergence{
        .event = event_, .step = request_of_, .field = field, .recorded = recorded, .now = now};
  }

  Found open(const Event& event, OptimizeSettings settings) {
    CG_TRY(eval::OpenedTask recorded, task_from(event.data));
    if (!settings_.file.empty()) settings.file = settings_.file;
    CG_TRY(opened_, open_task(parts_, ctx_, settings, observer_));
    const eval::OpenedTask& now = opened_.task;
    remark("toolchain", recorded.toolchain, now.toolchain);
    remark("torch", recorded.torch, now.torch);
    remark("sandbox", to_string(recorded.sandbox.label), to_string(now.sandbox.label));
    if (recorded.task.id != now.task.id) return differs("task/id", recorded.task.id, now.task.id);
    if (recorded.device != now.device) return differs("task/device", recorded.device, now.device);
    const bool differs_much = std::abs(recorded.floor_ns - now.floor_ns) > 1e-6 * recorded.floor_ns;
    if ((recorded.reachable_ns <= 0 && now.reachable_ns > 0) || (rules_changed_ && differs_much))
      remark("floor", human_ns(recorded.floor_ns) + " by an older rule", human_ns(now.floor_ns));
    else if (differs_much)
      return differs("task/floor_ns", fmt::format("{}", recorded.floor_ns),
                     fmt::format("{}", now.floor_ns));
    return std::optional<Divergence>();
  }

  Found note(const Event& event) {
    ObjectReader r(event.data, "event " + std::to_string(event.seq));
    CG_TRY(request_of_, r.string("candidate"));
    CG_TRY(std::string rung, r.string("up_to"));
    CG_TRY(request_.up_to, rung_from(rung));
    CG_TRY(request_.profile, r.boolean("profile"));
    return std::optional<Divergence>();
  }

  Found judge(const Event& event, const RunView& view) {
    ObjectReader r(event.data, "event " + std::to_string(event.seq));
    CG_TRY(Json json, r.object("verdict"));
    CG_TRY(Verdict recorded, read_json<Verdict>(json));
    CG_TRY(std::string candidate, r.string("candidate"));
    if (candidate != request_of_) {  // a draft that a tool call evaluated
      request_of_ = candidate;
      request_.up_to = Rung::timing;
      request_.profile = recorded.profile.has_value();
    }
    if (recorded.status == Status::aborted) {
      ++result_.left_out;
      return std::optional<Divergence>();
    }
    if (recorded.policy_version != Verdict().policy_version) {
      ++result_.other_policy;
      return std::optional<Divergence>();
    }
    const RunStep* step = view.find(request_of_);
    if (!step || !opened_.evaluator)
      return user_error("the journal has an evaluation without a candidate or a task before it",
                        "event " + std::to_string(event.seq));
    request_.program = step->candidate.program;
    request_.tests = view.tests;
    const std::string label = "again " + request_of_ + ": ";
    CG_TRY(Verdict now, opened_.evaluator->evaluate(ctx_, request_, [&](const std::string& line) {
      observer_.on_progress(label + line);
    }));
    if (now.status == Status::aborted)
      return world_error(
          "the evaluator could not judge " + request_of_ + " again: " + now.feedback.headline,
          "try again; `cutegen doctor` checks this machine");
    ++result_.evaluations;
    return compare(recorded, now);
  }

  Found compare(const Verdict& recorded, const Verdict& now) {
    if (recorded.program_id != now.program_id)
      return differs("verdict/program_id", recorded.program_id, now.program_id);
    if (recorded.status != now.status)
      return differs("verdict/status", status_text(recorded), status_text(now));
    if (rung_text(recorded) != rung_text(now))
      return differs("verdict/rung", rung_text(recorded), rung_text(now));
    if (recorded.timing.has_value() != now.timing.has_value())
      return differs("verdict/timing", time_text(recorded), time_text(now));
    if (!recorded.timing) return std::optional<Divergence>();
    const double change = std::abs(now.timing->time_ns / recorded.timing->time_ns - 1);
    // Written so that NaN (a recorded time of zero) also counts as a change.
    if (!(change <= settings_.tolerance))
      return differs("verdict/time_ns", time_text(recorded), time_text(now));
    result_.largest_change = std::max(result_.largest_change, change);
    return std::optional<Divergence>();
  }

  void remark(const std::string& what, const std::string& recorded, const std::string& now) {
    if (recorded != now)
      result_.remarks.push_back(what + ": recorded " + sanitize(recorded, kShown) + ", now " +
                                sanitize(now, kShown));
  }

  const Parts& parts_;
  Context ctx_;
  const ReEvaluateSettings& settings_;
  RunObserver& observer_;
  ReEvaluation& result_;
  Opened opened_;
  eval::EvaluateRequest request_;
  std::string request_of_;
  int64_t event_ = 0;
  bool rules_changed_ = false;  // some recorded verdicts have another policy version
};

}  // namespace

Result<RunResult> replay_with(const Parts& parts, const Context& ctx, store::Store& store,
                              const std::string& run, RunObserver& observer) {
  CG_TRY(std::string id, store.resolve(run));
  CG_TRY(auto events, store.read(id));
  Replay replay(parts);
  for (const Event& event : events) {
    CG_CHECK(ctx.check("replaying run " + id));
    CG_CHECK(replay.step(event));
    observer.on_event(event);
  }
  return outcome_of(replay.view(), id);
}

Result<ReEvaluation> re_evaluate_with(const Parts& parts, const Context& ctx, store::Store& store,
                                      const std::string& run, const ReEvaluateSettings& settings,
                                      RunObserver& observer) {
  CG_TRY(std::string id, store.resolve(run));
  CG_TRY(auto events, store.read(id));
  ReEvaluation result;
  Replay replay(parts);
  ReEvaluator evaluator(parts, ctx, settings, observer, result);
  CG_CHECK(evaluator.note_policies(events));
  for (const Event& event : events) {
    CG_CHECK(ctx.check("replaying run " + id));
    CG_TRY(result.divergence, evaluator.check(event, replay.view()));
    if (result.divergence) break;
    if (auto step = replay.step(event); !step) {
      result.divergence = replay.divergence(event);
      if (!result.divergence) return fail(step.error());
      break;
    }
    ++result.events;
    observer.on_event(event);
  }
  result.recorded = outcome_of(replay.view(), id);
  return result;
}

Json to_json(const ReEvaluation& r) {
  Json out{{"schema", "cutegen.replay.v1"},
           {"run", r.recorded.run_id},
           {"events", r.events},
           {"identical", !r.divergence},
           {"evaluations", r.evaluations},
           {"left_out", r.left_out},
           {"other_policy", r.other_policy},
           {"largest_change", r.largest_change},
           {"remarks", r.remarks}};
  if (r.divergence)
    out["divergence"] = {{"event", r.divergence->event},
                         {"step", r.divergence->step},
                         {"field", r.divergence->field},
                         {"recorded", r.divergence->recorded},
                         {"now", r.divergence->now}};
  return out;
}

std::string to_text(const Divergence& d) {
  return fmt::format("{}event {}, {}: recorded {}; now {}",
                     d.step.empty() ? "" : sanitize(d.step, 80) + ", ", d.event,
                     sanitize(d.field, 200), sanitize(d.recorded, 400), sanitize(d.now, 400));
}

}  // namespace cutegen::engine
