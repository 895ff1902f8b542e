// SPDX-License-Identifier: Apache-2.0
// The report page: fills report.html.mustache from the run's view. The template escapes all values
// except the charts, whose code escapes names itself.
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "core/floor.h"
#include "engine/record/program_diff.h"
#include "engine/report/cost_text.h"
#include "engine/report/report.h"
#include "engine/report/report_chart.h"
#include "engine/report/report_gain.h"
#include "engine/report/report_parts.h"
#include "engine/report/rewrite_text.h"
#include "engine/report/roofline_chart.h"

namespace cutegen::engine {

const std::map<std::string, std::string>& report_templates();  // embedded

namespace {

constexpr size_t kText = size_t{256} << 10;
constexpr size_t kDiffLines = 2000, kKernels = 16, kRemarks = 3;

std::string ratio(double a, double b) {
  return b > 0 ? fmt::format("{:.2f}x", a / b) : "-";
}

std::string seconds(int64_t ms) {
  return fmt::format("{:.1f} s", double(ms) / 1e3);
}

const Timing* best_timing(const RunView& view) {
  const RunStep* best = view.incumbent();
  return best && best->verdict && best->verdict->timing ? &*best->verdict->timing : nullptr;
}

// The origin of all times of this run's own steps, which come from one device.
Origin origin_of_steps(const RunView& view) {
  for (const RunStep& step : view.steps)
    if (step.time_ns() && !step.imported) return step.verdict->timing->origin;
  return Origin::modelled;
}

std::string verdict_line(const RunView& view) {
  const RunStep* best = view.incumbent();
  if (!best) return "No correct program was found.";
  std::string line = best->candidate.id + " is correct";
  if (best->verdict && best->verdict->sets_judged > 0)
    line += fmt::format(" on {} sets of inputs", best->verdict->sets_judged);
  if (const Timing* t = best_timing(view)) {
    line += fmt::format(", {} ({})", human_ns(t->time_ns), to_string(t->origin));
    if (best->imported) line += " on " + sanitize(best->imported->device, 120);
    if (auto over = view.over_first(*best))
      line += ", " + ratio_text(over) + " " + first_name(view);
  }
  return line + ".";
}

ReportData cards(const RunView& view) {
  ReportData out(Kind::list);
  auto card = [&](const std::string& label, const std::string& value) {
    ReportData c(Kind::object);
    c.set("label", label);
    c.set("value", value);
    out.push_back(c);
  };
  double floor = view.task ? view.task->floor_ns : 0;
  if (const Timing* t = best_timing(view)) {
    card(std::string("best, ") + to_string(t->origin), human_ns(t->time_ns));
    if (auto gain = view.gain())
      card("faster than " + sanitize(gain->kind, 60), fmt::format("{:.2f}x", gain->speedup));
    const RunStep& best = *view.incumbent();
    if (auto over = view.over_first(best)) card("faster than the first correct", ratio_text(over));
    if (auto over = view.over_floor(best)) card("of the floor's time", ratio_text(over));
  }
  if (view.task && view.task->reachable_ns > 0)
    card("reachable", human_ns(view.task->reachable_ns));
  if (floor > 0) card("floor", human_ns(floor));
  card("evaluations", std::to_string(view.evaluations));
  card("spent", seconds(view.clock_ms));
  return out;
}

std::string shapes_text(const Task& task) {
  std::vector<std::string> parts;
  parts.reserve(task.tensors.size());
  for (const TensorInfo& t : task.tensors)
    parts.push_back(t.name + " " + to_string(t.dtype) + " " + cutegen::to_string(t.shape));
  return join(parts, ", ");
}

// The time to aim for: the reachable bound, or the floor if the run is too old to have one.
struct Goal {
  double ns = 0;
  std::string name;
};
Goal goal_of(const eval::OpenedTask& o) {
  if (o.reachable_ns > 0) return {.ns = o.reachable_ns, .name = "the reachable bound"};
  return {.ns = o.floor_ns, .name = "the floor"};
}

// Lists each baseline with its time and the best program's gain, and says why others are missing.
void add_baselines(Entries& e, const RunView& view) {
  if (!view.baselines || !view.task) return;
  const Timing* t = best_timing(view);
  for (const BaselineTime& b : view.baselines->times) {
    std::string value = b.known() ? human_ns(b.time_ns) + " (" + to_string(b.origin) + ")" : b.why;
    if (b.known() && !b.accuracy.precision.empty()) value += ", " + accuracy_text(b.accuracy);
    if (b.known() && t && !view.incumbent()->imported)
      value += ", the best program is " + ratio(b.time_ns, t->time_ns) + " as fast";
    e.add("baseline " + b.kind, value);
  }
  e.add("baselines", view.baselines->note);
  const BaselineTime* best = best_baseline(view.baselines->times, view.task->task.math_mode);
  const Goal goal = goal_of(*view.task);
  if (best && goal.ns > 0)
    e.add("to win", ratio(best->time_ns, goal.ns) + " between the fastest baseline in " +
                        to_string(view.task->task.math_mode) + ", " + best->kind + ", and " +
                        goal.name);
}

ReportData what_to_win(const RunView& view) {
  Entries e;
  if (!view.task) return e.list();
  const eval::OpenedTask& o = *view.task;
  bool simulated = !view.settings.evaluator.device.is_gpu();
  e.add("tensors", shapes_text(o.task));
  if (o.floor_ns > 0) e.add("floor", floor_text(o.floor_ns, o.reachable_ns, o.floor_bound_by));
  e.add("roofline", roofline_text(o.roofline_ns, o.floor_bound_by));
  const Timing* t = best_timing(view);
  const Goal goal = goal_of(o);
  if (view.first_ns && goal.ns > 0)
    e.add("headroom", ratio(*view.first_ns, goal.ns) + " between the first program and " +
                          goal.name +
                          (t && !view.incumbent()->imported
                               ? ", " + ratio(t->time_ns, goal.ns) + " left at the end"
                               : ""));
  if (simulated) e.add("baseline", "none measured: the device is a simulator");
  add_baselines(e, view);
  for (const std::string& text : rewrite_lines(view)) e.add("rewrite", text);
  e.add("admission", o.admission.admitted ? fmt::format("{} degenerate solutions fail",
                                                        o.admission.lazy_answers_tried)
                                          : "not admitted: " + join(o.admission.passing, "; "));
  e.add("remark", o.admission.remark);
  return e.list();
}

// Says what bounds each kernel of the best program, with the figures, and what costs most.
ReportData what_holds_back(const RunView& view) {
  const Profile* known = view.best_profile();
  if (!known) return Entries().list();
  const Profile& profile = *known;
  Entries e;
  if (const std::string source = profile.source.text(); !source.empty())
    e.add("counters of", source + (profile.note.empty() ? "" : "; " + profile.note));
  for (size_t i = 0; i < std::min(profile.kernels.size(), kKernels); ++i) {
    const KernelProfile& k = profile.kernels[i];
    if (k.diagnosis.bound == Bound::unknown) continue;
    std::string said =
        fmt::format("{} ({}): {}", human_ns(k.time_ns), to_string(k.origin), k.diagnosis.summary);
    for (size_t n = 0; n < std::min(k.remarks.size(), kRemarks); ++n)
      said += " · " + k.remarks[n].message;
    e.add(k.kernel, said);
  }
  return e.list();
}

ReportData diff_of(const RunView& view, const RunStep& step) {
  ReportData files(Kind::list);
  const RunStep* parent = step.candidate.parent ? view.find(*step.candidate.parent) : nullptr;
  if (!parent) return files;
  for (const FileDiff& diff : program_diffs(parent->candidate.program, step.candidate.program)) {
    ReportData lines(Kind::list);
    for (size_t i = 0; i < std::min(diff.lines.size(), kDiffLines); ++i) {
      const agent::DiffLine& line = diff.lines[i];
      ReportData l(Kind::object);
      l.set("kind", std::string(line.mark == '+' ? "a" : line.mark == '-' ? "d" : "s"));
      l.set("text", text(std::string(1, line.mark == '@' ? ' ' : line.mark) + " " + line.text));
      lines.push_back(l);
    }
    ReportData file(Kind::object);
    file.set("name", text(diff.name));
    file.set("lines", lines);
    files.push_back(file);
  }
  return files;
}

void add_times(ReportData& row, const RunView& view, const RunStep& step) {
  row.set("time", time_text(step.time_ns()));
  row.set("first", ratio_text(view.over_first(step)));
  row.set("floor", ratio_text(view.over_floor(step)));
  row.set("turn", in_turn_text(step));
  row.set("took", seconds(step.elapsed_ms));
}

ReportData step_row(const RunView& view, const RunStep& step) {
  ReportData row(Kind::object);
  bool kept = step.decision == Decision::accepted;
  bool correct = step.verdict && step.verdict->status == Status::correct;
  bool draft = step.drafted && step.decision == Decision::open;
  std::string result = kept ? "better" : !correct ? "not judged" : draft ? "draft" : "no gain";
  if (step.verdict && !correct) result = to_string(step.verdict->status);
  row.set("id", text(step.candidate.id));
  row.set("parent", text(step.candidate.parent.value_or("")));
  add_times(row, view, step);
  row.set("result", result);
  row.set("class", std::string(kept ? "good" : correct ? "soft" : "bad"));
  row.set("change", text(step.candidate.edit.summary));
  // The template treats a missing key as false, but an empty string as true.
  std::string why = step.reason;
  if (!step.candidate.edit.rationale.empty())
    why = step.candidate.edit.rationale + (why.empty() ? "" : " · " + why);
  if (!why.empty()) row.set("why", text(why, 1000));
  if (step.verdict && !step.verdict->feedback.detail.empty())
    row.set("detail", text(step.verdict->feedback.detail, 8000));
  ReportData files = diff_of(view, step);
  row.set("has_diff", ReportData(files.is_non_empty_list()));
  row.set("files", files);
  return row;
}

ReportData best_program(const RunStep& best) {
  ReportData files(Kind::list);
  auto add = [&](const std::string& name, const std::string& content) {
    ReportData file(Kind::object);
    file.set("name", text(name));
    file.set("text", text(content, kText));
    files.push_back(file);
  };
  add("plan.json", dump_json(to_json(best.candidate.program.plan), 2));
  for (const auto& [name, source] : best.candidate.program.sources) add(name, source);
  ReportData out(Kind::object);
  out.set("id", text(best.candidate.id));
  out.set("files", files);
  return out;
}

ReportData limits(const RunView& view) {
  ReportData out(Kind::list);
  auto add = [&](const std::string& line) { out.push_back(text(line, 1000)); };
  if (const RunStep* best = view.incumbent()) {
    const Plan& plan = best->candidate.program.plan;
    add("Architectures: " + join(plan.arch, ", ") + ".");
    for (const Expr& e : plan.requires_) add("Requires " + e.text() + ".");
    if (best->verdict)
      for (const std::string& skipped : best->verdict->skipped) add("Skipped: " + skipped);
    if (best->verdict)
      for (const std::string& mark : best->verdict->marks) add("Mark: " + mark);
    add("Other shapes, dtypes and GPUs: an export runs the module itself.");
  }
  if (const RunStep* best = view.incumbent(); best && best->imported)
    add("The best program's figures are imported: they come from " + best->imported->device + ".");
  if (const Timing* t = best_timing(view); t && t->origin == Origin::modelled)
    add("Times are modelled from the counts of the simulated kernel; no GPU measured anything.");
  if (!view.task) return out;
  const eval::OpenedTask& o = *view.task;
  std::vector<std::string> shapes;
  shapes.reserve(o.task.shapes.size());
  for (const ShapeCase& s : o.task.shapes) shapes.push_back(s.name);
  add("Shapes of the task: " + join(shapes, ", ") +
      "; input distributions: " + join(o.admission.families, ", ") + ".");
  std::vector<std::string> without;
  for (const auto& [name, held] : o.sandbox.held)
    if (!held) without.push_back(name);
  add(std::string("Sandbox: ") + to_string(o.sandbox.label) +
      (without.empty() ? "." : ", without " + join(without, ", ") + "."));
  for (const std::string& note : o.task.notes) add(note);
  return out;
}

ReportData cost(const RunView& view) {
  int64_t evaluating = 0, attempts = 0;
  for (const RunStep& step : view.steps) evaluating += step.elapsed_ms, attempts += step.attempts;
  Entries e;
  e.add("evaluations", std::to_string(view.evaluations) +
                           (attempts > view.evaluations
                                ? fmt::format(" and {} aborted ones", attempts - view.evaluations)
                                : ""));
  e.add("programs", std::to_string(view.steps.size()));
  e.add("time", seconds(view.clock_ms) + " (" + seconds(evaluating) + " evaluating)");
  if (view.resumes > 0) e.add("resumed", fmt::format("{} times", view.resumes));
  bool asked = view.settings.search.agents.has_value();
  e.add("model", asked ? model_cost_text(view) : "no model was asked");
  if (const RunStep* best = view.incumbent(); best && asked)
    e.add("CuTe", cute_use_text(best->candidate.program));
  return e.list();
}

ReportData settings_list(const RunView& view) {
  Entries e;
  if (view.task)
    e.add("toolchain", view.task->toolchain)
        .add("torch", view.task->torch)
        .add("task id", view.task->task.id);
  if (const RunStep* best = view.incumbent())
    e.add("program id", program_id(best->candidate.program));
  for (const auto& [key, value] : view.settings.resolved_config.items()) {
    if (!value.is_object() || !value.contains("value") || !value.contains("source")) continue;
    const Json& v = value["value"];
    e.add(key, (v.is_string() ? v.get<std::string>() : dump_json(v)) + " (" +
                   value.value("source", "") + ")");
  }
  return e.list();
}

// Quotes a word for a shell unless it has only plain characters.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return "'" + replace_all(word, "'", "'\\''") + "'";
}

// The flag --minutes covers both the search and the certificate.
std::string minutes_flags(const OptimizeSettings& s) {
  std::string out;
  if (s.search.budget.minutes > 0)
    out += fmt::format(" --minutes {}", s.search.budget.minutes + s.certify_minutes);
  if (s.evaluator.device.is_gpu()) out += fmt::format(" --certify-minutes {}", s.certify_minutes);
  return out;
}

std::string accuracy_flags(const AskedAccuracy& asked) {
  std::string out;
  if (asked.math_mode) out += fmt::format(" --math-mode {}", to_string(*asked.math_mode));
  if (asked.rtol) out += fmt::format(" --rtol {}", *asked.rtol);
  if (asked.atol) out += fmt::format(" --atol {}", *asked.atol);
  return out;
}

std::string commands(const store::RunInfo& info, const RunView& view) {
  const OptimizeSettings& s = view.settings;
  std::string file = quoted(s.file.string());
  return "# the same search\ncutegen optimize " + file + " --device " +
         quoted(s.evaluator.device.text()) + " --model " + quoted(s.model) + " --strategy " +
         quoted(to_string(s.strategy)) + " --evaluations " +
         std::to_string(s.search.budget.evaluations) + minutes_flags(s) + accuracy_flags(s.asked) +
         "\n# judge the best program again\ncutegen eval " + file + " " + quoted(s.out.string()) +
         accuracy_flags(s.asked) +
         "\n# check that the journal leads to the same actions\ncutegen optimize --replay " +
         info.id + "\n";
}

}  // namespace

Result<std::string> report_html(const store::RunInfo& info, const std::vector<Event>& events) {
  CG_TRY(RunView view, view_run(events));
  ReportData page(Kind::object);
  page.set("task", text(view.task ? view.task->task.name : info.task_name));
  page.set("workload", text(view.task ? view.task->task.workload : ""));
  page.set("math_mode", text(view.task ? mode_text(view.task->task) : ""));
  page.set("device", text(view.settings.evaluator.device.text()));
  page.set("run", text(info.id));
  page.set("created", text(info.created));
  page.set("state", text(to_string(info.state)));
  page.set("cards", cards(view));
  page.set("verdict", text(verdict_line(view)));
  page.set("stopped", text(view.finished ? "Stopped: " + *view.finished
                                         : "The run is not finished; the page shows it so far."));
  page.set("win", what_to_win(view));
  if (std::string svg = chart_svg(view); !svg.empty()) {
    ReportData chart(Kind::object);
    chart.set("svg", svg);
    chart.set("origin", std::string(to_string(origin_of_steps(view))));
    page.set("chart", chart);
  }
  ReportData steps(Kind::list);
  for (const RunStep& step : view.steps)
    if (!step.imported) steps.push_back(step_row(view, step));
  page.set("steps", steps);
  add_gain(page, view);
  if (ReportData held = what_holds_back(view); held.is_non_empty_list()) {
    ReportData box(Kind::object);
    box.set("kernels", held);
    page.set("held", box);
  }
  if (const RunStep* best = view.incumbent()) page.set("best", best_program(*best));
  page.set("limits", limits(view));
  page.set("cost", cost(view));
  page.set("commands", text(commands(info, view), 8000));
  page.set("settings", settings_list(view));
  kainjow::mustache::mustache page_template(
      report_templates().at("src/engine/report/report.html.mustache"));
  CG_ASSERT(page_template.is_valid());
  return page_template.render(page);
}

}  // namespace cutegen::engine
