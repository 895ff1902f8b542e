// SPDX-License-Identifier: Apache-2.0
#include "engine/report/run_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "core/floor.h"
#include "engine/report/certificate_text.h"
#include "engine/report/text_lines.h"

namespace cutegen::engine {
namespace {

std::string tensors_text(const Task& task) {
  std::vector<std::string> in, out;
  for (const TensorInfo& t : task.tensors) {
    std::string text = clean(t.name) + " " + to_string(t.dtype) + " " + cutegen::to_string(t.shape);
    if (t.role == TensorRole::output) out.push_back(text);
    if (t.mutated) out.push_back(clean(t.name) + " (mutated)");
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
  return to_string(grade.label) +
         std::string(missing.empty() ? "" : " (without " + join(missing, ", ") + ")");
}

std::string admission_text(const eval::Admission& a) {
  std::string text =
      a.admitted ? fmt::format("yes: {} degenerate solutions fail", a.lazy_answers_tried)
                 : "no" + (a.passing.empty() ? "" : ": " + clean(join(a.passing, "; "), 400));
  if (!a.families.empty()) text += "; inputs: " + clean(join(a.families, ", "), 200);
  if (!a.remark.empty()) text += "; " + clean(a.remark);
  return text;
}

std::string decision_text(const RunStep& step) {
  if (step.imported && step.verdict->status == Status::correct)
    return step.decision == Decision::accepted ? "imported +" : "imported";
  if (step.decision == Decision::accepted) return "better";
  if (!step.verdict) return "-";
  if (step.decision == Decision::open && step.drafted && step.verdict->status == Status::correct)
    return "draft";
  if (step.verdict->status == Status::correct) return "no gain";
  return to_string(step.verdict->status);
}

// Names the device that the times belong to, and the source of counters for profiles.
std::string device_text(const RunView& view) {
  const eval::OpenedTask& o = *view.task;
  const std::string name = clean(view.settings.evaluator.device.text());
  if (o.driver.empty())
    return line("device",
                name + ", a simulator: it models the times and counts what the kernel does");
  return line("device",
              fmt::format("{} ({}, driver {})", clean(o.product.empty() ? o.gpu : o.product), name,
                          clean(o.driver))) +
         line("counters", o.counters.empty() ? "not known" : clean(o.counters, 300));
}

// The incumbent's time at that step divided by this one's, timed alternately.
const PairedRatio* in_turn(const RunStep& step) {
  if (!step.time_ns()) return nullptr;
  for (const PairedRatio& p : step.verdict->timing->paired)
    if (p.against == kIncumbent) return &p;
  return nullptr;
}

bool on_gpu(const RunView& view) {
  return view.settings.evaluator.device.is_gpu();
}

// What a step cost in time and money.
std::string cost_text(const RunStep& step) {
  std::string out = fmt::format("{:.1f} s", double(step.elapsed_ms) / 1e3);
  if (step.usd > 0) out += fmt::format(" ${:.3f}", step.usd);
  return out;
}

std::string sm_clock_text(const RunStep& step) {
  if (!step.time_ns() || !step.verdict->timing->sm_clock_hz) return "-";
  return fmt::format("{:.2f} GHz", *step.verdict->timing->sm_clock_hz / 1e9);
}

std::string clock_text(int64_t ms) {
  return fmt::format("{}:{:02}", ms / 60'000, ms / 1000 % 60);
}

}  // namespace

namespace {

std::string class_text(const BaselineTime& t) {
  return t.accuracy.precision.empty() ? "another math mode" : clean(accuracy_text(t.accuracy));
}

}  // namespace

std::string baselines_text(const RunView& view) {
  if (!view.settings.evaluator.device.is_gpu())
    return line("baseline", "none: a simulator times no baseline");
  if (!view.settings.baselines) return line("baseline", "none: --baseline none");
  if (!view.baselines || !view.task) return {};
  std::vector<std::string> known, missing;
  for (const BaselineTime& t : view.baselines->times) {
    if (t.known())
      known.push_back(fmt::format(
          "{} {} ({}{})", clean(t.kind), human_ns(t.time_ns), to_string(t.origin),
          in_math_mode(t, view.task->task.math_mode) ? "" : ", not compared: " + class_text(t)));
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
  const eval::OpenedTask& o = *view.task;
  if (o.reachable_ns > 0)
    text += ", at " + times(best->time_ns, o.reachable_ns) + " the reachable bound";
  else if (o.floor_ns > 0)
    text += ", at " + times(best->time_ns, o.floor_ns) + " the floor";
  return out + line("to win", text);
}

const char* state_of(const RunView& view) {
  return view.finished ? "finished" : "interrupted";
}

std::string task_text(const RunView& view) {
  if (!view.task) return {};
  const eval::OpenedTask& o = *view.task;
  const std::string roofline = roofline_text(o.roofline_ns, o.floor_bound_by);
  return line("task", fmt::format("{}: {}, {}", clean(o.task.name), clean(o.task.workload),
                                  clean(mode_text(o.task)))) +
         line("", tensors_text(o.task)) + device_text(view) +
         line("floor", floor_text(o.floor_ns, o.reachable_ns, o.floor_bound_by)) +
         (roofline.empty() ? "" : line("roofline", roofline)) + baselines_text(view) +
         line("toolchain", clean(o.toolchain) + ", " + clean(o.torch)) +
         line("sandbox", sandbox_text(o.sandbox)) + line("admitted", admission_text(o.admission));
}

std::string step_header(const RunView& view) {
  const std::string best =
      on_gpu(view) ? fmt::format(" {:>20} {:>9}", "vs best so far", "SM clock") : "";
  return fmt::format("\n{:<5} {:>10}{} {:>9} {:>9}  {:<11} {:>6} {:>6}  {}\n", "step", "time", best,
                     "vs first", "vs floor", "result", "took", "at", "change");
}

std::string step_line(const RunView& view, const RunStep& step) {
  std::string turn;
  if (on_gpu(view)) {
    const PairedRatio* p = in_turn(step);
    turn = fmt::format(" {:>20} {:>9}", p ? interval_text(p->speedup, p->low, p->high) : "-",
                       sm_clock_text(step));
  }
  std::string change = clean(step.candidate.edit.summary, 160);
  if (step.imported) change += " (on " + clean(step.imported->device, 80) + ")";
  if (step.verdict && step.verdict->status != Status::correct)
    change += ": " + clean(step.verdict->feedback.headline, 300);
  return fmt::format("{:<5} {:>10}{} {:>9} {:>9}  {:<11} {:>6} {:>6}  {}\n", step.candidate.id,
                     time_text(step.time_ns()), turn, ratio_text(view.over_first(step)),
                     ratio_text(view.over_floor(step)), decision_text(step), cost_text(step),
                     clock_text(step.clock_ms), change);
}

}  // namespace cutegen::engine
