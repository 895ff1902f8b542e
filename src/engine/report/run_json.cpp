// SPDX-License-Identifier: Apache-2.0
#include "engine/report/run_json.h"

#include "base/words.h"
#include "engine/record/end_data.h"
#include "engine/report/before_after.h"
#include "engine/report/fail_under.h"
#include "engine/report/run_text.h"
#include "engine/run/complete_best.h"
#include "search/structure.h"

namespace cutegen::engine {
namespace {

// Adds the best program's profile, its certificate (or why it has none) and what it saves.
void put_end(Json& out, const RunView& view) {
  if (view.profiled) out["profiled"] = to_json(*view.profiled);
  if (view.certified) {
    out["certified"] = to_json(*view.certified);
  } else if (view.incumbent()) {
    const std::string why = no_certificate(view.settings);
    out["certified"] = {{"candidate", view.best},
                        {"why", why.empty() ? "it is not finished" : why}};
  }
  if (auto saved = before_after(view)) out["before_after"] = to_json(*saved);
}

}  // namespace

Json step_json(const RunStep& step) {
  Json out{{"id", step.candidate.id},
           {"parent", step.candidate.parent ? Json(*step.candidate.parent) : Json(nullptr)},
           {"change", step.candidate.edit.summary},
           {"origin", step.candidate.edit.origin},
           {"params", step.candidate.edit.params},
           {"program_id", program_id(step.candidate.program)},
           {"decision", to_string(step.decision)},
           {"drafted", step.drafted.has_value()},
           {"reason", step.reason},
           {"status", step.verdict ? Json(to_string(step.verdict->status)) : Json(nullptr)},
           {"time_ns", optional_json(step.time_ns())}};
  if (!step.candidate.edit.rewrites.empty())
    out["rewrites"] = write_json(step.candidate.edit.rewrites);
  if (step.time_ns()) out["time_origin"] = to_string(step.verdict->timing->origin);
  if (step.time_ns()) {
    const Timing& t = *step.verdict->timing;
    if (t.sm_clock_hz) out["sm_clock_hz"] = *t.sm_clock_hz;
    for (const PairedRatio& p : t.paired)
      if (p.against == kIncumbent) out["over_best_so_far"] = to_json(p);
  }
  out["attempts"] = step.attempts;
  out["elapsed_ms"] = step.elapsed_ms;
  out["clock_ms"] = step.clock_ms;
  if (step.usd > 0) out["usd"] = step.usd;
  if (step.imported)
    out["imported"] = {{"entry", step.imported->entry},
                       {"device", step.imported->device},
                       {"origin", to_string(step.imported->origin)}};
  return out;
}

Json run_json(const RunView& view, const std::string& run_id) {
  Json out{{"schema", "cutegen.run.v1"}, {"run", run_id}, {"state", state_of(view)}};
  out["reason"] = view.finished ? Json(*view.finished) : Json(nullptr);
  out["file"] = view.settings.file.string();
  out["strategy"] = to_string(view.settings.strategy);
  out["model"] = view.settings.model;
  out["device"] = view.settings.evaluator.device.text();
  out["config"] = view.settings.resolved_config;
  if (view.task) {
    const eval::OpenedTask& o = *view.task;
    out["task"] = {{"id", o.task.id}, {"name", o.task.name}, {"workload", o.task.workload}};
    out["floor_ns"] = o.floor_ns;
    out["floor_bound_by"] = to_string(o.floor_bound_by);
    if (o.reachable_ns > 0) out["reachable_ns"] = o.reachable_ns;
    if (o.roofline_ns > 0) out["roofline_ns"] = o.roofline_ns;
    if (!o.driver.empty())
      out["gpu"] = {{"name", o.product}, {"driver", o.driver}, {"counters", o.counters}};
    out["sandbox"] = to_json(o.sandbox);
    out["admitted"] = o.admission.admitted;
  }
  if (view.baselines) {
    auto gain = view.gain();
    out["baselines"] = to_json(*view.baselines);
    out["gain"] = gain ? to_json(*gain) : Json(nullptr);
  }
  if (auto gain = best_gain(view)) out["best_gain"] = to_json(*gain);
  out["first_ns"] = optional_json(view.first_ns);
  const RunStep* best = view.incumbent();
  out["best"] = best ? step_json(*best) : Json(nullptr);
  if (best && best->verdict) out["verdict"] = to_json(*best->verdict);
  put_end(out, view);
  if (view.settings.search.agents) {
    out["models"] = {{"calls", view.models.calls},
                     {"input_tokens", view.models.input},
                     {"cached_tokens", view.models.cached},
                     {"output_tokens", view.models.output},
                     {"usd", view.models.usd},
                     {"unpriced", view.models.unpriced},
                     {"reasks", view.reasks},
                     {"tools", to_string(view.settings.model_settings.tools)},
                     {"tool_calls", view.tool_calls}};
    if (best) out["cute"] = search::to_json(search::cute_use(best->candidate.program));
  }
  out["evaluations"] = view.evaluations;
  out["elapsed_ms"] = view.clock_ms;
  out["out"] =
      best && !view.settings.out.empty() ? Json(view.settings.out.string()) : Json(nullptr);
  out["steps"] = Json::array();
  for (const RunStep& step : view.steps) out["steps"].push_back(step_json(step));
  return out;
}

}  // namespace cutegen::engine
