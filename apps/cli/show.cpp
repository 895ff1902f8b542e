// SPDX-License-Identifier: Apache-2.0
// `cutegen show RUN [CANDIDATE]`: shows a run and its steps, or one candidate with verdict, source
// and diff.
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "engine/record/program_diff.h"
#include "engine/report/end_text.h"
#include "engine/report/run_json.h"
#include "engine/report/run_text.h"

namespace cutegen::cli {
namespace {

struct ShowOptions {
  Settings settings;
  std::string run = "last", candidate;
  bool source = false, diff = false;
};

constexpr size_t kShown = size_t{1} << 20;

std::string run_page(const FoundRun& run) {
  std::string text = fmt::format("run        {} ({}), {} of {}\n", run.info.id,
                                 to_string(run.info.state), run.info.strategy, run.info.created);
  text += engine::task_text(run.view);
  if (!run.view.steps.empty()) text += engine::step_header(run.view);
  for (const engine::RunStep& step : run.view.steps) text += engine::step_line(run.view, step);
  return text + engine::end_text(run.view, run.info.id);
}

std::string verdict_page(const Verdict& v) {
  std::string text;
  for (const RungReport& r : v.rungs)
    text += fmt::format("  {:<12} {:<8} {:>10}  {}\n", to_string(r.rung),
                        r.result == RungResult::passed   ? "passed"
                        : r.result == RungResult::failed ? "failed"
                                                         : "skipped",
                        human_ns(double(r.elapsed.count())), sanitize(r.detail, 300));
  if (!v.feedback.headline.empty()) text += "  " + sanitize(v.feedback.headline, 1000) + "\n";
  if (!v.feedback.detail.empty()) text += sanitize(v.feedback.detail, 8000) + "\n";
  return text;
}

std::string candidate_page(const FoundRun& run, const engine::RunStep& step) {
  std::string text = engine::step_header(run.view).substr(1) + engine::step_line(run.view, step);
  text += fmt::format("parent     {}\n", step.candidate.parent.value_or("none"));
  text += fmt::format("from       {} {}\n", sanitize(step.candidate.edit.origin, 100),
                      dump_json(step.candidate.edit.params));
  if (!step.reason.empty())
    text +=
        fmt::format("{:<11}{}\n", engine::to_string(step.decision), sanitize(step.reason, 1000));
  if (step.verdict)
    text += "verdict    " + std::string(to_string(step.verdict->status)) + "\n" +
            verdict_page(*step.verdict);
  return text;
}

Result<const engine::RunStep*> candidate_of(const FoundRun& run, const ShowOptions& options) {
  std::string id = options.candidate.empty() ? run.view.best : options.candidate;
  if (const engine::RunStep* step = run.view.find(id)) return step;
  if (options.candidate.empty())
    return user_error("run " + run.info.id + " has no correct candidate yet", {},
                      "name a candidate: cutegen show RUN c1 --source");
  std::string last =
      run.view.steps.empty() ? "none" : "c1 to " + run.view.steps.back().candidate.id;
  return user_error("run " + run.info.id + " has no candidate '" + sanitize(id, 40) + "'", {},
                    "it has " + last);
}

Result<void> show(const Globals& g, const ShowOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto store, open_runs(config));
  CG_TRY(FoundRun run, find_run(*store, options.run));
  if (options.candidate.empty() && !options.source && !options.diff) {
    print_result(g, engine::run_json(run.view, run.info.id), run_page(run));
    return {};
  }
  CG_TRY(const engine::RunStep* step, candidate_of(run, options));
  const engine::RunStep* parent =
      step->candidate.parent ? run.view.find(*step->candidate.parent) : nullptr;
  std::string diff = engine::program_diff(parent ? parent->candidate.program : KernelProgram{},
                                          step->candidate.program);
  Json document = engine::step_json(*step);
  document["schema"] = "cutegen.candidate_page.v1";
  document["program"] = to_json(step->candidate.program);
  document["diff"] = diff;
  document["verdict"] = step->verdict ? to_json(*step->verdict) : Json(nullptr);
  std::string text = options.source ? engine::program_text(step->candidate.program)
                     : options.diff ? diff
                                    : candidate_page(run, *step);
  print_result(g, document, sanitize(text, kShown));
  return {};
}

}  // namespace

void add_show(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("show", "show a run, or one of its candidates");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("RUN", options->run,
                      "a run: its id, the start of its id, or last (default last)");
  command->add_option("CANDIDATE", options->candidate,
                      "c1, c2, ... (default with --source: the best)");
  auto* source =
      command->add_flag("--source", options->source, "print the candidate's plan and sources");
  command->add_flag("--diff", options->diff, "print the candidate's differences from its parent")
      ->excludes(source);
  options->settings.add(*command, {"runs_dir"});
  command->footer(
      "Examples:\n"
      "  cutegen show               the last run, step by step\n"
      "  cutegen show last c3       one candidate with its verdict\n"
      "  cutegen show last c3 --diff\n"
      "  cutegen show last --source the best program");
  command->callback([&g, options] {
    auto done = show(g, *options);
    g.exit = done ? int(kExitOk) : report(g, done.error());
  });
}

}  // namespace cutegen::cli
