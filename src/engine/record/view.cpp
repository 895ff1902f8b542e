// SPDX-License-Identifier: Apache-2.0
#include "engine/record/view.h"

#include <algorithm>
#include <utility>

#include "engine/record/end_data.h"
#include "engine/record/event_data.h"
#include "engine/record/step_data.h"

namespace cutegen::engine {

std::optional<double> RunStep::time_ns() const {
  if (!verdict || verdict->status != Status::correct || !verdict->timing) return std::nullopt;
  return verdict->timing->time_ns;
}

// If a later evaluation (for a profile) is aborted, the earlier correct verdict stays.
void RunStep::take(Verdict judged, int64_t took_ms) {
  elapsed_ms += took_ms;
  ++attempts;
  const bool lost =
      judged.status == Status::aborted && verdict && verdict->status == Status::correct;
  if (!lost) verdict = std::move(judged);
}

// {"reply": {"usage": {...}, "cost_usd": ...}}, or an error that cost nothing.
void ModelCost::add(const Json& call_end) {
  ++calls;
  if (call_end.contains("elapsed_ms") && call_end["elapsed_ms"].is_number_integer())
    elapsed_ms += call_end["elapsed_ms"].get<int64_t>();
  if (!call_end.contains("reply") || !call_end["reply"].is_object()) return;
  const Json& reply = call_end["reply"];
  auto number = [&](const char* key) {
    const Json usage = reply.value("usage", Json::object());
    return usage.contains(key) && usage[key].is_number_integer() ? usage[key].get<int64_t>() : 0;
  };
  input += number("input") + number("cache_written") + number("cached");
  cached += number("cached");
  output += number("output");
  if (reply.contains("cost_usd") && reply["cost_usd"].is_number())
    usd += reply["cost_usd"].get<double>();
  else
    unpriced = true;
}

const RunStep* RunView::find(const std::string& candidate) const {
  for (const RunStep& step : steps)
    if (step.candidate.id == candidate) return &step;
  return nullptr;
}

Result<RunStep*> RunView::step_of(const Event& event, const std::string& candidate) {
  for (RunStep& step : steps)
    if (step.candidate.id == candidate) {
      step.clock_ms = clock_ms;
      return &step;
    }
  return user_error("no candidate '" + candidate + "' was proposed before",
                    "event " + std::to_string(event.seq) + "/candidate");
}

Result<void> RunView::on_answered(const Event& event) {
  ++answers;
  CG_TRY(Answered answer, data_of<Answered>(event));
  reasks += int64_t(answer.reasks.size());
  if (!answer.tests.empty()) tests = std::move(answer.tests);
  if (answer.outcome == search::Outcome::proposed)
    add_step(std::move(*answer.candidate), std::nullopt);
  return {};
}

// If an answer is one of the drafts, its description replaces the draft's.
void RunView::add_step(Candidate candidate, std::optional<int64_t> drafted) {
  for (RunStep& step : steps)
    if (step.drafted && step.candidate.id == candidate.id) {
      step.candidate = std::move(candidate);
      return;
    }
  RunStep step;
  step.candidate = std::move(candidate);
  step.clock_ms = clock_ms;
  step.drafted = drafted;
  step.usd = models.usd - std::exchange(told_usd_, models.usd);
  steps.push_back(std::move(step));
}

Result<void> RunView::on_evaluated(const Event& event) {
  CG_TRY(Evaluated data, data_of<Evaluated>(event));
  CG_TRY(RunStep * step, step_of(event, data.candidate));
  if (data.verdict.status != Status::aborted) ++evaluations;
  step->take(std::move(data.verdict), data.elapsed_ms);
  return {};
}

Result<void> RunView::apply(const Event& event) {
  const EventType type = event.type;
  ObjectReader r(event.data, "event " + std::to_string(event.seq));
  CG_TRY(clock_ms, r.integer_or("clock_ms", clock_ms));
  interrupted = type == EventType::interrupted;
  if (type == EventType::opened) {
    CG_TRY(settings, read_json<OptimizeSettings>(event.data));
  } else if (type == EventType::task) {
    CG_TRY(task, task_from(event.data));
  } else if (type == EventType::baselines) {
    CG_TRY(baselines, read_json<TaskBaselines>(event.data));
  } else if (type == EventType::answered) {
    return on_answered(event);
  } else if (type == EventType::drafted) {
    CG_TRY(Drafted draft, data_of<Drafted>(event));
    add_step(std::move(draft.candidate), answers);
  } else if (type == EventType::tool_called) {
    ++tool_calls;
  } else if (type == EventType::evaluation_started) {
    CG_TRY(auto started, data_of<search::Evaluate>(event));
    tests = std::move(started.tests);
  } else if (type == EventType::evaluated) {
    return on_evaluated(event);
  } else if (type == EventType::call_ended) {
    models.add(event.data);
  } else if (type == EventType::accepted || type == EventType::rejected) {
    return on_decided(event);
  } else if (type == EventType::resumed) {
    ++resumes;
  } else {
    return apply_end(event);
  }
  return {};
}

// Applies the events at the end of a run and after it.
Result<void> RunView::apply_end(const Event& event) {
  const EventType type = event.type;
  if (type == EventType::profiled) {
    CG_TRY(profiled, read_json<BestProfile>(event.data));
  } else if (type == EventType::certifying) {
    CG_TRY(Certifying started, data_of<Certifying>(event));
    certifying = std::move(started.candidate);
  } else if (type == EventType::certified) {
    CG_TRY(certified, read_json<BestCertificate>(event.data));
    certifying.clear();
  } else if (type == EventType::finished) {
    CG_TRY(auto finish, data_of<search::Finish>(event));
    finished = std::move(finish.reason);
  } else if (type == EventType::imported) {
    return on_imported(event.data, "event " + std::to_string(event.seq));
  }
  return {};
}

Result<void> RunView::on_decided(const Event& event) {
  CG_TRY(auto decision, data_of<search::Accept>(event));  // a rejection has the same fields
  CG_TRY(RunStep * step, step_of(event, decision.candidate));
  const bool accepted = event.type == EventType::accepted;
  step->decision = accepted ? Decision::accepted : Decision::rejected;
  step->reason = std::move(decision.reason);
  if (!accepted) return {};
  best = step->candidate.id;
  if (!first_ns) first_ns = step->time_ns();
  const bool source = task && task->start && step == &steps.front();
  if (source && baselines && step->time_ns())
    baselines->times.push_back(source_baseline(*step->verdict->timing));
  return {};
}

Result<void> RunView::on_imported(const Json& data, const std::string& where) {
  CG_TRY(RunStep step, imported_step_from(data, where));
  step.clock_ms = clock_ms;
  if (step.decision == Decision::accepted) best = step.candidate.id;
  steps.push_back(std::move(step));
  return {};
}

std::optional<BaselineGain> RunView::gain() const {
  const RunStep* step = incumbent();
  if (!step || step->imported || !step->time_ns() || !task || !baselines) return std::nullopt;
  return hardest_gain(*baselines, task->task.math_mode, *step->time_ns());
}

std::optional<double> RunView::over_first(const RunStep& step) const {
  auto ns = step.time_ns();
  if (!ns || step.imported || !first_ns || *ns <= 0) return std::nullopt;
  return *first_ns / *ns;
}

const char* first_name(const RunView& view) {
  return view.task && view.task->start ? "the source kernel" : "the first correct program";
}

std::optional<double> RunView::over_floor(const RunStep& step) const {
  auto ns = step.time_ns();
  const double floor = step.imported && ns ? step.verdict->timing->floor_ns
                       : task              ? task->floor_ns
                                           : 0;
  if (!ns || floor <= 0) return std::nullopt;
  return *ns / floor;
}

const Profile* RunView::best_profile() const {
  const RunStep* step = incumbent();
  if (!step) return nullptr;
  if (profiled && profiled->candidate == best && profiled->profile) return &*profiled->profile;
  return step->verdict && step->verdict->profile ? &*step->verdict->profile : nullptr;
}

const Certificate* RunView::best_certificate() const {
  const bool known = certified && certified->candidate == best && certified->certificate;
  return known ? &*certified->certificate : nullptr;
}

std::optional<int> other_policy(const RunView& view) {
  const int now = Verdict().policy_version;
  for (const RunStep& step : view.steps)
    if (step.verdict && step.verdict->status != Status::aborted &&
        step.verdict->policy_version != now)
      return step.verdict->policy_version;
  return std::nullopt;
}

Result<RunView> view_run(const std::vector<Event>& events) {
  RunView view;
  for (const Event& event : events) CG_CHECK(view.apply(event));
  return view;
}

RunResult outcome_of(const RunView& view, const std::string& run_id) {
  RunResult out;
  out.run_id = run_id;
  out.reason = view.finished.value_or("");
  out.interrupted = view.interrupted;
  out.evaluations = view.evaluations;
  out.first_ns = view.first_ns;
  if (view.task) out.floor_ns = view.task->floor_ns;
  if (const RunStep* best = view.incumbent()) {
    out.best = best->candidate;
    out.best_verdict = best->verdict;
  }
  if (!out.best && !view.steps.empty() && view.steps.front().verdict) {
    Status common = view.steps.front().verdict->status;
    if (std::all_of(view.steps.begin(), view.steps.end(), [&](const RunStep& step) {
          return step.verdict && step.verdict->status == common;
        }))
      out.all_verdicts = common;
  }
  return out;
}

}  // namespace cutegen::engine
