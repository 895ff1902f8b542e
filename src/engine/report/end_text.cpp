// SPDX-License-Identifier: Apache-2.0
#include "engine/report/end_text.h"

#include "base/units.h"
#include "engine/report/before_after.h"
#include "engine/report/certificate_text.h"
#include "engine/report/cost_text.h"
#include "engine/report/rewrite_text.h"
#include "engine/report/text_lines.h"
#include "engine/run/complete_best.h"

namespace cutegen::engine {
namespace {

// Names the shapes that the program was judged on. The times belong to the first one.
std::string shapes_limit(const Task& task) {
  std::vector<std::string> names;
  names.reserve(task.shapes.size());
  for (const ShapeCase& s : task.shapes) names.push_back(clean(s.name, 40));
  return "shapes " + join(names, ", ") + "; times are for " + names.front();
}

std::string limits_text(const RunView& view, const RunStep& best) {
  std::vector<std::string> limits;
  const Verdict& v = *best.verdict;
  if (v.timing && v.timing->origin == Origin::modelled)
    limits.push_back("times are modelled, not measured: " + view.settings.evaluator.device.text() +
                     " is a simulator; no baseline was timed");
  if (best.imported)
    limits.push_back(fmt::format("the figures are imported: {} on {}",
                                 to_string(best.imported->origin), clean(best.imported->device)));
  if (view.task) limits.push_back(shapes_limit(view.task->task));
  for (const Expr& e : best.candidate.program.plan.requires_)
    limits.push_back("requires " + clean(e.text()));
  limits.push_back("arch " + join(best.candidate.program.plan.arch, ", "));
  if (v.sets_judged > 0)
    limits.push_back(fmt::format("correct on {} sets of inputs", v.sets_judged));
  for (const std::string& mark : v.marks) limits.push_back("mark: " + clean(mark));
  for (const std::string& skipped : v.skipped) limits.push_back("skipped: " + clean(skipped));
  if (view.task)
    for (const std::string& note : view.task->task.notes) limits.push_back(clean(note));
  limits.push_back("on other shapes, dtypes and GPUs an export runs the module itself");
  std::string out;
  for (size_t i = 0; i < limits.size(); ++i) out += line(i ? "" : "limits", limits[i]);
  return out;
}

// Writes "1.32x eager (3.02 ms, cached)" for each baseline, and then the speedup over the fastest
// baseline in the math mode.
std::string gains_text(const RunView& view, const RunStep& best) {
  auto ns = best.time_ns();
  if (!ns || best.imported || !view.baselines || !view.task) return {};
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

// "launches 5 -> 1, memory traffic 1.2 GB -> 403 MB (least 403 MB)"
std::string saved_text(const RunView& view) {
  auto saved = before_after(view);
  return saved ? line("saved", to_text(*saved)) : std::string();
}

std::string error_text(const RunStep& best) {
  if (!best.verdict->accuracy) return {};
  const Accuracy& a = *best.verdict->accuracy;
  return line("error", fmt::format("at most {:.3g}, the native reference's {:.3g}; {:.1f}% of the "
                                   "tolerance",
                                   a.error, a.native_error, 100 * a.share));
}

std::string certified_text(const RunView& view) {
  if (const Certificate* c = view.best_certificate())
    return line("certified", certificate_head(*c)) + certificate_text(*c);
  std::string why = no_certificate(view.settings);
  if (view.certified && view.certified->candidate != view.best)
    why = "the certificate is of " + view.certified->candidate + ", another program";
  else if (view.certified)
    why = view.certified->why;
  else if (why.empty())
    why = view.finished ? "this run made no certificate" : "not finished";
  return line("certified", "no: " + clean(why, 600));
}

// Says why the best program has no profile, and which imported verdicts on it are not correct.
std::string doubts_text(const RunView& view, const RunStep& best) {
  std::string out;
  if (view.profiled && view.profiled->candidate == view.best && !view.profiled->why.empty())
    out += line("profile", "none: " + clean(view.profiled->why, 600));
  for (const RunStep& step : view.steps)
    if (step.imported && step.verdict->status != Status::correct &&
        step.candidate.parent == best.candidate.id)
      out += line("elsewhere", fmt::format("{} on {}: {}", to_string(step.verdict->status),
                                           clean(step.imported->device),
                                           clean(step.verdict->feedback.headline, 300)));
  return out;
}

std::string files_text(const RunView& view, const RunStep& best) {
  std::vector<std::string> names{"plan.json"};
  for (const auto& [name, text] : best.candidate.program.sources) names.push_back(clean(name, 60));
  names.emplace_back("verdict.json");
  if (view.best_certificate()) names.emplace_back("certificate.json");
  return join(names, ", ");
}

}  // namespace

std::string end_text(const RunView& view, const std::string& run_id) {
  std::string out = "\n";
  if (view.finished)
    out += line("stopped", clean(*view.finished, 400));
  else if (!view.certifying.empty())
    out +=
        line("stopped",
             "interrupted while " + view.certifying +
                 " was being certified; everything found is kept; continue with: cutegen resume " +
                 run_id);
  else
    out += line("stopped", "interrupted; continue with: cutegen resume " + run_id);
  const RunStep* best = view.incumbent();
  if (best && best->verdict) {
    std::string text = best->candidate.id;
    if (auto ns = best->time_ns()) {
      const Timing& t = *best->verdict->timing;
      text += fmt::format(", {} {}", human_ns(*ns), to_string(t.origin));
      if (auto ratio = view.over_first(*best))
        text += ", " + ratio_text(ratio) + " " + first_name(view);
      if (auto ratio = view.over_floor(*best)) text += ", " + ratio_text(ratio) + " the floor";
    }
    out += line("best", text) + gains_text(view, *best) + saved_text(view) + error_text(*best) +
           certified_text(view) + doubts_text(view, *best);
  } else if (view.finished) {
    out += line("best", "none: no correct program was found");
  }
  out += rewrites_text(view);
  out += line("cost", fmt::format("{} of {} in {:.1f} s", counted(view.evaluations, "evaluation"),
                                  counted(int64_t(view.steps.size()), "program"),
                                  double(view.clock_ms) / 1e3));
  if (view.models.calls > 0)
    out += line("model", clean(view.settings.model) + ": " + model_cost_text(view));
  if (best && view.settings.search.agents)
    out += line("cute", cute_use_text(best->candidate.program));
  if (best && best->verdict) out += limits_text(view, *best);
  if (best && !view.settings.out.empty())
    out += line("written", clean(view.settings.out.string()) + ": " + files_text(view, *best));
  out += line("run", run_id + " (cutegen report " + run_id + " makes a page of it)");
  return out;
}

}  // namespace cutegen::engine
