// SPDX-License-Identifier: Apache-2.0
// `cutegen optimize FILE`: from a PyTorch module to the best kernel program that a run finds.
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/run_observer.h"
#include "cli/run_text.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "engine/command_proposer.h"

namespace cutegen::cli {
namespace {

struct Options {
  Settings settings;
  ModelOptions model;
  std::string file, out = "out", replay, proposer;
  double minutes = 0, fail_under = 0;
};

Result<int> replay(const Globals& g, Store& store, const Options& options) {
  ConsoleObserver observer(g);
  CG_TRY(RunOutcome outcome, replay_run(g.ctx, store, options.replay, observer));
  CG_TRY(auto events, store.read(outcome.run_id));
  Json document{{"schema", "cutegen.replay.v1"},
                {"run", outcome.run_id},
                {"events", events.size()},
                {"identical", true}};
  print_result(g, document,
               "\nreplay     run " + outcome.run_id + ": " + std::to_string(events.size()) +
                   " events, every action and every answer as recorded\n");
  return kExitOk;
}

// The model, or the user's own command that stands in its place.
Result<std::string> model_of(const Options& options, const Config& config) {
  if (options.proposer.empty()) return config.text("model");
  if (config.setting("model").source.starts_with("flag"))
    return user_error("--proposer and --model both say who proposes", "--proposer", "give one");
  return kCommandModel + options.proposer;
}

Result<int> optimize_file(const Globals& g, const Options& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto store, open_runs(config));
  if (!options.replay.empty()) return replay(g, *store, options);
  if (options.file.empty())
    return user_error("no task file", "cutegen optimize", "give one: cutegen optimize FILE");
  OptimizeSettings s;
  s.file = options.file;
  s.out = options.out;
  s.strategy = config.text("strategy");
  CG_TRY(s.model, model_of(options, config));
  s.evaluator.device = config.text("device");
  s.evaluator.python = config.text("python");
  s.evaluator.require_sandbox = config.boolean("require_sandbox");
  s.search.budget.evaluations = config.integer("budget_evaluations");
  s.search.budget.minutes = options.minutes;
  CG_CHECK(options.model.apply(s));
  s.resolved_config = config.json();
  if (!options.proposer.empty())
    s.resolved_config["model"] = {{"value", s.model}, {"source", "flag --proposer"}};
  s.resolved_config["minutes"] = {{"value", options.minutes},
                                  {"source", options.minutes > 0 ? "flag --minutes" : "default"}};
  ConsoleObserver observer(g);
  CG_TRY(RunOutcome outcome, optimize(g.ctx, *store, s, observer));
  return observer.finish(outcome, options.fail_under);
}

}  // namespace

void add_optimize(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("optimize", "find a fast kernel program for a task");
  auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file,
                      "a PyTorch file with Model, get_inputs, get_init_inputs");
  options->settings.add(*command, {"device", "model", "strategy", "budget_evaluations", "python",
                                   "runs_dir", "require_sandbox"});
  command->add_option("--minutes", options->minutes, "time the run may spend (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--proposer", options->proposer,
                      "command that proposes the programs, in JSON lines (docs/proposer.md)");
  command->add_option("--out", options->out, "folder for the best program (default out)");
  command
      ->add_option("--fail-under", options->fail_under,
                   "exit 7 unless the best is this many times faster than the first correct")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--replay", options->replay,
                      "check that the recorded run RUN gives the same actions and answers again");
  options->model.add(*command);
  command->footer(
      "What it does: describes the task and says what there is to win; proposes a first program;\n"
      "changes one thing at a time; keeps what is correct and faster; stops at the floor, on a\n"
      "plateau or at the end of the budget. Every step is in a journal, so that a run that was\n"
      "stopped goes on with `cutegen resume`.\n"
      "Examples:\n"
      "  cutegen optimize tasks/softmax.py                     on the simulator, with no model\n"
      "  cutegen optimize tasks/softmax.py --evaluations 10 --out best --fail-under 1.5\n"
      "  cutegen optimize tasks/softmax.py --model relay:q     you answer the questions in folder "
      "q\n"
      "  cutegen optimize tasks/softmax.py --model anthropic:NAME --budget-usd 2\n"
      "  cutegen optimize --replay last                        check the last run's journal\n"
      "Exit codes: 0 done, 2 user error, 3 nothing correct (or no recipe), 5 unsupported,\n"
      "  6 environment, 7 below --fail-under, 130 interrupted.");
  command->callback([&g, options] {
    auto code = optimize_file(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
