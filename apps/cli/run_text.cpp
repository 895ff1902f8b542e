// SPDX-License-Identifier: Apache-2.0
#include "cli/run_text.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "base/units.h"
#include "engine/cost_text.h"
#include "search/structure.h"

namespace cutegen::cli {
namespace {

std::string clean(const std::string& text, size_t limit = 200) {
  std::string out = sanitize(text, limit);
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return out;
}

std::string line(const char* name, const std::string& value) {
  return fmt::format("{:<11}{}\n", name, value);
}

std::string times(double a, double b) {
  return b > 0 ? fmt::format("{:.2f}x", a / b) : std::string("-");
}

std::string counted(int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string tensors_text(const Task& task) {
  std::vector<std::string> in, out;
  for (const TensorInfo& t : task.tensors) {
    std::string text = clean(t.name) + " " + to_string(t.dtype) + " " + to_string(t.shape);
    if (t.role == TensorRole::output) out.push_back(text);
    if (t.role == TensorRole::input || t.role == TensorRole::parameter) in.push_back(text);
  }
  if (in.size() > 6) {
    std::string more = fmt::format("... {} more", in.size() - 5);
    in.resize(5);
    in.push_back(more);
  }
  return join(in, ", ") + " -> " + join(out, ", ");
}

std::string sandbox_text(const SandboxGrade& grade) {
  std::vector<std::string> missing;
  for (const auto& [name, held] : grade.held)
    if (!held) missing.push_back(name);
  return grade.label + (missing.empty() ? "" : " (without " + join(missing, ", ") + ")");
}

std::string admission_text(const Admission& a) {
  std::string text = a.admitted ? fmt::format("yes: {} lazy answers fail", a.lazy_answers_tried)
                                : "no: " + clean(join(a.passing, "; "), 400);
  if (!a.families.empty()) text += "; inputs: " + clean(join(a.families, ", "), 200);
  if (!a.remark.empty()) text += "; " + clean(a.remark);
  return text;
}

std::string decision_text(const RunStep& step) {
  if (step.decision == Decision::accepted) return "better";
  if (!step.verdict) return "-";
  if (step.decision == Decision::open && step.drafted && step.verdict->status == Status::correct)
    return "draft";
  if (step.verdict->status == Status::correct) return "no gain";
  return to_string(step.verdict->status);
}

std::string limits_text(const RunView& view, const RunStep& best) {
  std::vector<std::string> limits;
  const Verdict& v = *best.verdict;
  if (v.timing && v.timing->origin == Origin::modelled)
    limits.push_back("times are modelled, not measured: " + view.settings.evaluator.device +
                     " is a simulator; no baseline was timed");
  for (const Expr& e : best.candidate.program.plan.requires_)
    limits.push_back("requires " + clean(e.text()));
  limits.push_back("arch " + join(best.candidate.program.plan.arch, ", "));
  if (v.sets_judged > 0)
    limits.push_back(fmt::format("correct on {} sets of inputs", v.sets_judged));
  for (const std::string& skipped : v.skipped) limits.push_back("skipped: " + clean(skipped));
  if (view.task)
    for (const std::string& note : view.task->task.notes) limits.push_back(clean(note));
  std::string out;
  for (size_t i = 0; i < limits.size(); ++i) out += line(i ? "" : "limits", limits[i]);
  return out;
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// "1.32x eager (3.02 ms, cached)" of each, the one that counts last.
std::string gains_text(const RunView& view, const RunStep& best) {
  auto ns = best.time_ns();
  if (!ns || !view.baselines || !view.task) return {};
  std::vector<std::string> parts;
  for (const BaselineGain& g : gains(*view.baselines, view.task->task.math_mode, *ns))
    parts.push_back(fmt::format("{:.2f}x {} ({}, {})", g.speedup, clean(g.kind),
                                human_ns(g.time_ns), to_string(g.origin)));
  auto gain = view.gain();
  if (!gain) return parts.empty() ? std::string() : line("gain", join(parts, ", "));
  return line("gain", join(parts, ", ")) +
         line("", fmt::format("{:.2f}x {}, the fastest baseline in {}", gain->speedup,
                              clean(gain->kind), to_string(view.task->task.math_mode)));
}

}  // namespace

std::string baselines_text(const RunView& view) {
  if (view.settings.evaluator.device.starts_with("sim:"))
    return line("baseline", "none: a simulator times no baseline");
  if (!view.settings.baselines) return line("baseline", "none: --baseline none");
  if (!view.baselines || !view.task) return {};
  std::vector<std::string> known, missing;
  for (const BaselineTime& t : view.baselines->times) {
    if (t.known())
      known.push_back(
          fmt::format("{} {} ({})", clean(t.kind), human_ns(t.time_ns), to_string(t.origin)));
    else
      missing.push_back(clean(t.kind) + ": " + clean(t.why));
  }
  std::string out = line("baseline", known.empty() ? "none" : join(known, ", "));
  for (const std::string& m : missing) out += line("", m);
  if (!view.baselines->note.empty()) out += line("", clean(view.baselines->note, 600));
  const BaselineTime* best = best_baseline(view.baselines->times, view.task->task.math_mode);
  if (!best) return out;
  std::string text = fmt::format("{} is the fastest in {}", clean(best->kind),
                                 to_string(view.task->task.math_mode));
  if (view.task->floor_ns > 0)
    text += ", at " + times(best->time_ns, view.task->floor_ns) + " the floor";
  return out + line("to win", text);
}

const char* state_of(const RunView& view) {
  return view.finished ? "finished" : "interrupted";
}

std::string task_text(const RunView& view) {
  if (!view.task) return {};
  const OpenedTask& o = *view.task;
  std::string floor =
      o.floor_ns > 0 ? fmt::format("{} (bound by {}) on {}: no kernel is faster",
                                   human_ns(o.floor_ns), clean(o.floor_bound_by), clean(o.device))
                     : std::string("unknown");
  return line("task", fmt::format("{}: {}, {}", clean(o.task.name), clean(o.task.workload),
                                  to_string(o.task.math_mode))) +
         line("", tensors_text(o.task)) + line("floor", floor) + baselines_text(view) +
         line("toolchain", clean(o.toolchain) + ", " + clean(o.torch)) +
         line("sandbox", sandbox_text(o.sandbox)) + line("admitted", admission_text(o.admission));
}

std::string step_header() {
  return fmt::format("\n{:<5} {:>10} {:>9} {:>9}  {:<11} {}\n", "step", "time", "vs first",
                     "vs floor", "result", "change");
}

std::string step_line(const RunView& view, const RunStep& step) {
  std::string time = "-", first = "-", floor = "-";
  if (auto ns = step.time_ns()) {
    time = human_ns(*ns);
    if (view.first_ns) first = times(*view.first_ns, *ns);
    if (view.task) floor = times(*ns, view.task->floor_ns);
  }
  std::string change = clean(step.candidate.edit.summary, 160);
  if (step.verdict && step.verdict->status != Status::correct)
    change += ": " + clean(step.verdict->feedback.headline, 300);
  return fmt::format("{:<5} {:>10} {:>9} {:>9}  {:<11} {}\n", step.candidate.id, time, first, floor,
                     decision_text(step), change);
}

std::string end_text(const RunView& view, const std::string& run_id) {
  std::string out = "\n";
  out += view.finished ? line("stopped", clean(*view.finished, 400))
                       : line("stopped", "interrupted; go on with: cutegen resume " + run_id);
  const RunStep* best = view.incumbent();
  if (best && best->verdict) {
    std::string text = best->candidate.id;
    if (auto ns = best->time_ns()) {
      const char* origin = to_string(best->verdict->timing->origin);
      text += fmt::format(", {} {}", human_ns(*ns), origin);
      if (view.first_ns) text += ", " + times(*view.first_ns, *ns) + " the first correct program";
      if (view.task && view.task->floor_ns > 0)
        text += ", " + times(*ns, view.task->floor_ns) + " the floor";
    }
    out += line("best", text) + gains_text(view, *best);
  } else if (view.finished) {
    out += line("best", "none: nothing correct was found");
  }
  out += line("cost", fmt::format("{} of {} in {:.1f} s", counted(view.evaluations, "evaluation"),
                                  counted(static_cast<int64_t>(view.steps.size()), "program"),
                                  static_cast<double>(view.clock_ms) / 1e3));
  if (view.models.calls > 0)
    out += line("model", clean(view.settings.model) + ": " + model_cost_text(view));
  if (best && view.settings.search.agents)
    out += line("cute", cute_use_text(best->candidate.program));
  if (best && best->verdict) out += limits_text(view, *best);
  if (best && !view.settings.out.empty()) out += line("written", clean(view.settings.out.string()));
  out += line("run", run_id + " (cutegen report " + run_id + " makes a page of it)");
  return out;
}

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
  if (step.time_ns()) out["time_origin"] = to_string(step.verdict->timing->origin);
  out["attempts"] = step.attempts;
  out["elapsed_ms"] = step.elapsed_ms;
  return out;
}

Json run_json(const RunView& view, const std::string& run_id) {
  Json out{{"schema", "cutegen.run.v1"}, {"run", run_id}, {"state", state_of(view)}};
  out["reason"] = view.finished ? Json(*view.finished) : Json(nullptr);
  out["file"] = view.settings.file.string();
  out["strategy"] = view.settings.strategy;
  out["model"] = view.settings.model;
  out["device"] = view.settings.evaluator.device;
  out["config"] = view.settings.resolved_config;
  if (view.task) {
    const OpenedTask& o = *view.task;
    out["task"] = {{"id", o.task.id}, {"name", o.task.name}, {"workload", o.task.workload}};
    out["floor_ns"] = o.floor_ns;
    out["floor_bound_by"] = o.floor_bound_by;
    out["sandbox"] = to_json(o.sandbox);
    out["admitted"] = o.admission.admitted;
  }
  if (view.baselines) {
    auto gain = view.gain();
    out["baselines"] = to_json(*view.baselines);
    out["gain"] = gain ? to_json(*gain) : Json(nullptr);
  }
  out["first_ns"] = optional_json(view.first_ns);
  const RunStep* best = view.incumbent();
  out["best"] = best ? step_json(*best) : Json(nullptr);
  if (best && best->verdict) out["verdict"] = to_json(*best->verdict);
  if (view.settings.search.agents) {
    out["models"] = {{"calls", view.models.calls},
                     {"input_tokens", view.models.input},
                     {"cached_tokens", view.models.cached},
                     {"output_tokens", view.models.output},
                     {"usd", view.models.usd},
                     {"unpriced", view.models.unpriced},
                     {"reasks", view.reasks},
                     {"tools", view.settings.model_settings.tools},
                     {"tool_calls", view.tool_calls}};
    if (best) out["cute"] = to_json(cute_use(best->candidate.program));
  }
  out["evaluations"] = view.evaluations;
  out["elapsed_ms"] = view.clock_ms;
  out["out"] =
      best && !view.settings.out.empty() ? Json(view.settings.out.string()) : Json(nullptr);
  out["steps"] = Json::array();
  for (const RunStep& step : view.steps) out["steps"].push_back(step_json(step));
  return out;
}

}  // namespace cutegen::cli
