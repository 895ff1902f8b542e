// SPDX-License-Identifier: Apache-2.0
// `cutegen optimize FILE`: finds the best kernel program for a PyTorch module in one run.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/run_observer.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "engine/propose/command_proposer.h"
#include "engine/run/replay_run.h"
#include "toolchain/compile_memory.h"

namespace cutegen::cli {
namespace {

struct OptimizeOptions {
  Settings settings;
  ModelOptions model;
  std::string file, out = "out", replay, proposer;
  double minutes = 0, certify_minutes = 3, fail_under = 0;
  bool re_evaluate = false, no_profile = false;
  std::string baseline = kAuto;
  double tolerance = 5;  // percent
  CLI::Option *tolerance_given = nullptr, *certify_given = nullptr;
};

Result<int> replay(const Globals& g, store::Store& store, const OptimizeOptions& options) {
  if (!options.file.empty())
    return user_error("a replay without --re-evaluate takes no task file", options.file,
                      "omit it; the run knows its task");
  ConsoleObserver observer(g);
  CG_TRY(engine::RunResult outcome,
         engine::replay_with(engine::real_parts(), g.ctx, store, options.replay, observer));
  CG_TRY(auto events, store.read(outcome.run_id));
  Json document{{"schema", "cutegen.replay.v1"},
                {"run", outcome.run_id},
                {"events", events.size()},
                {"identical", true}};
  print_result(g, document,
               "\nreplay     run " + outcome.run_id + ": " + std::to_string(events.size()) +
                   " events; every action and every answer is as recorded\n");
  return kExitOk;
}

std::string re_evaluation_text(const engine::ReEvaluation& r) {
  std::string out = "\n";
  for (const std::string& remark : r.remarks) out += "remark     " + remark + "\n";
  const std::string evaluated =
      fmt::format("{} evaluations repeated{}, times within {:.1f}%", r.evaluations,
                  r.left_out > 0 ? fmt::format(" ({} aborted ones skipped)", r.left_out) : "",
                  100 * r.largest_change);
  if (r.divergence)
    return out + fmt::format("diverges   {}\nbefore it  {} events as recorded, {}\n",
                             engine::to_text(*r.divergence), r.events, evaluated);
  return out + fmt::format("replay     run {}: {} events as recorded, {}\n", r.recorded.run_id,
                           r.events, evaluated);
}

Result<int> re_evaluate(const Globals& g, store::Store& store, const OptimizeOptions& options,
                        const std::string& run) {
  ConsoleObserver observer(g);
  engine::ReEvaluateSettings settings{.file = options.file, .tolerance = options.tolerance / 100};
  CG_TRY(engine::ReEvaluation r,
         engine::re_evaluate_with(engine::real_parts(), g.ctx, store, run, settings, observer));
  const int code = r.divergence ? kExitFailed : kExitOk;
  Json document = engine::to_json(r);
  document["tolerance"] = settings.tolerance;
  document["exit_code"] = code;
  print_result(g, document, re_evaluation_text(r));
  return code;
}

// The run to replay, from --replay or from the model replay:RUN.
Result<std::string> run_to_replay(const OptimizeOptions& options, const Config& config) {
  constexpr std::string_view kReplay = "replay:";
  const std::string model = config.text("model");
  if (!options.re_evaluate && options.tolerance_given->count() > 0)
    return user_error("--tolerance has an effect only with --re-evaluate", "--tolerance",
                      "give both or neither");
  if (!options.re_evaluate || !options.replay.empty()) return options.replay;
  if (model.starts_with(kReplay)) return model.substr(kReplay.size());
  return user_error("--re-evaluate needs a recorded run to repeat", "--re-evaluate",
                    "name one with --replay RUN");
}

// The model, or the user's own command that replaces it.
Result<std::string> model_of(const OptimizeOptions& options, const Config& config) {
  if (options.proposer.empty()) return config.text("model");
  if (config.setting("model").is_flag())
    return user_error("--proposer and --model both name a proposer", "--proposer",
                      "give one of them");
  return engine::kCommandModel + options.proposer;
}

// Splits the run's minutes between search and certificate on a GPU: the certificate gets its own
// minutes, but at most half of all.
void share_minutes(const OptimizeOptions& options, engine::OptimizeSettings& s) {
  s.profile_best = !options.no_profile;
  s.search.budget.minutes = options.minutes;
  if (!s.evaluator.device.is_gpu()) return;
  s.certify_minutes = options.certify_minutes;
  if (options.minutes <= 0) return;
  s.certify_minutes = std::min(options.certify_minutes, options.minutes / 2);
  s.search.budget.minutes = options.minutes - s.certify_minutes;
}

Json flag_json(double value, const char* flag, bool given) {
  return {{"value", value}, {"source", given ? std::string("flag ") + flag : "default"}};
}

Result<int> optimize_file(const Globals& g, const OptimizeOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto store, open_runs(config));
  CG_TRY(std::string recorded, run_to_replay(options, config));
  if (options.re_evaluate) return re_evaluate(g, *store, options, recorded);
  if (!recorded.empty()) return replay(g, *store, options);
  if (options.file.empty())
    return user_error("no task file given", "cutegen optimize", "name one: cutegen optimize FILE");
  engine::OptimizeSettings s;
  s.file = options.file;
  s.out = options.out;
  CG_TRY(s.strategy, search::strategy_from(config.text("strategy")));
  CG_TRY(s.model, model_of(options, config));
  CG_TRY(s.asked, asked_accuracy(config));
  CG_TRY(s.rewrites, rewrites_of(config));
  CG_TRY(s.evaluator.device, DeviceName::parse(config.text("device")));
  s.evaluator.python = config.text("python");
  s.evaluator.require_sandbox = config.boolean("require_sandbox");
  CG_CHECK(toolchain::grant_compile_memory(config.text("compile_memory"), 1));
  s.search.budget.evaluations = config.integer("budget_evaluations");
  share_minutes(options, s);
  s.baselines = options.baseline == kAuto;
  CG_CHECK(options.model.apply(s));
  s.resolved_config = config.json();
  if (!options.proposer.empty())
    s.resolved_config["model"] = {{"value", s.model}, {"source", "flag --proposer"}};
  s.resolved_config["minutes"] = flag_json(options.minutes, "--minutes", options.minutes > 0);
  if (s.certify_minutes > 0)
    s.resolved_config["certify_minutes"] =
        flag_json(options.certify_minutes, "--certify-minutes", options.certify_given->count() > 0);
  ConsoleObserver observer(g);
  CG_TRY(engine::RunResult outcome, engine::optimize(g.ctx, *store, s, observer));
  return observer.finish(outcome, options.fail_under);
}

}  // namespace

void add_optimize(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("optimize", "find a fast kernel program for a task");
  auto options = std::make_shared<OptimizeOptions>();
  command->add_option("FILE", options->file,
                      "a PyTorch file with Model, get_inputs, get_init_inputs; or a CUDA kernel\n"
                      "NAME.cu with its side file NAME.toml (docs/kernel_tasks.md)");
  options->settings.add(*command, {"device", "model", "strategy", "rewrites", "budget_evaluations",
                                   "python", "runs_dir", "compile_memory", "require_sandbox"});
  add_accuracy(options->settings, *command);
  command
      ->add_option("--minutes", options->minutes,
                   "time limit of the run, including its certificate (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--proposer", options->proposer,
                      "your command that proposes programs as JSON lines (docs/proposer.md)");
  command
      ->add_option("--baseline", options->baseline,
                   "on a GPU: auto (use cached baselines, else time eager) or none (default auto)")
      ->check(CLI::IsMember({kAuto, "none"}));
  command->add_option("--out", options->out, "folder for the best program (default out)");
  options->certify_given =
      command
          ->add_option(
              "--certify-minutes", options->certify_minutes,
              "on a GPU: minutes for the certificate of the best program (default 3; 0: none)")
          ->check(CLI::NonNegativeNumber);
  command->add_flag("--no-profile", options->no_profile,
                    "do not profile the best program at the end");
  add_fail_under(*command, options->fail_under);
  command->add_option(
      "--replay", options->replay,
      "replay the recorded run RUN and check that actions and answers are the same");
  command->add_flag("--re-evaluate", options->re_evaluate,
                    "with --replay: also evaluate every candidate again");
  options->tolerance_given =
      command
          ->add_option("--tolerance", options->tolerance,
                       "with --re-evaluate: percent by which a time may differ (default 5)")
          ->check(CLI::Range(0.0, 1000.0));
  options->model.add(*command);
  command->footer(
      "cutegen traces the task and computes bounds on its time: the floor (no kernel is faster)\n"
      "and the reachable bound (a plain copy of the least bytes). It proposes a first kernel\n"
      "program, then changes one thing at a time and keeps each program that is correct and\n"
      "faster. The search stops within 3% of the reachable bound (memory-bound and launch-bound\n"
      "tasks), at the floor, on a plateau (several proposals without a gain), or when the budget\n"
      "is used.\n"
      "On a GPU, cutegen then certifies the best program: it times the program alternately with\n"
      "the baselines in fresh processes. A journal records every step; `cutegen resume`\n"
      "continues a stopped run.\n"
      "Examples:\n"
      "  cutegen optimize tasks/softmax.py                     on the simulator, without a model\n"
      "  cutegen optimize tasks/softmax.py --evaluations 10 --out best --fail-under 1.5\n"
      "  cutegen optimize tasks/softmax.py --device cuda:0     measured, certified at the end\n"
      "  cutegen optimize tasks/softmax.py --model relay:q     you answer the questions in folder "
      "q\n"
      "  cutegen optimize tasks/softmax.py --model anthropic:NAME --budget-usd 2\n"
      "  cutegen optimize tasks/astra/silu_and_mul.cu          start from a CUDA kernel\n"
      "  cutegen optimize --replay last                        check the last run's journal\n"
      "  cutegen optimize --replay last --re-evaluate          also repeat its verdicts; a "
      "difference\n"
      "                                                        is printed and gives exit code 3\n"
      "Exit codes: 0 done, 2 user error, 3 no correct program (or no recipe), 5 unsupported,\n"
      "  6 environment, 7 below --fail-under, 130 interrupted.");
  command->callback([&g, options] {
    auto code = optimize_file(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
