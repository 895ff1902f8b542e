// SPDX-License-Identifier: Apache-2.0
// `cutegen certify TASK DIR`: times a program against its baselines in fresh processes.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/program_folder.h"
#include "cli/settings.h"
#include "engine/report/certificate_text.h"
#include "engine/report/fail_under.h"
#include "eval/api/client.h"
#include "eval/api/foreign_file.h"
#include "eval/api/wanted_baselines.h"

namespace cutegen::cli {
namespace {

struct CertifyOptions {
  std::string task, folder;
  std::vector<std::string> baselines;
  int processes = 2;
  double fail_under = 0;
};

std::string page(const Certificate& c, const std::string& task) {
  return fmt::format("{} on {}\n{}  sandbox {}\n", task, engine::certificate_head(c),
                     engine::certificate_text(c), to_string(c.sandbox.label));
}

Result<int> run(const Globals& g, const CertifyOptions& options, const Settings& settings) {
  CG_TRY(Config config, settings.resolve());
  CG_TRY(AskedAccuracy asked, asked_accuracy(config));
  eval::CertifyRequest request;
  request.processes = options.processes;
  if (!options.baselines.empty()) {
    CG_TRY(request.baselines, eval::baselines_named(options.baselines));
  }
  CG_TRY(auto foreign, eval::find_foreign(options.folder));
  if (foreign)
    return user_error(
        "a third-party solution cannot be certified: it runs host code in the process that times "
        "it",
        options.folder,
        "judge it with cutegen eval TASK FILE.py, which times it alternately with eager");
  CG_TRY(ProgramFolder read, ProgramFolder::read(options.folder));
  request.program = read.program();
  eval::EvaluatorOptions evaluator;
  CG_TRY(evaluator.device, DeviceName::parse(config.text("device")));
  evaluator.python = config.text("python");
  evaluator.require_sandbox = config.boolean("require_sandbox");
  CG_TRY(auto client, eval::EvaluatorClient::start(g.ctx, evaluator));
  CG_TRY(eval::OpenedTask opened, client->open_task_as(g.ctx, options.task, asked));
  const bool live = !g.quiet && g.error_tty;
  auto certificate = client->certify(g.ctx, request, [&](const std::string& text) {
    if (live) fmt::print(stderr, "\r\033[K{}", text);
  });
  if (live) fmt::print(stderr, "\r\033[K");
  if (!certificate) return fail(certificate.error());
  std::string text = page(*certificate, opened.task.name);
  if (options.fail_under <= 0) {
    print_result(g, to_json(*certificate), text);
    return kExitOk;
  }
  const auto gain = engine::certified_gain(*certificate, opened.task.math_mode);
  const bool reached = engine::reaches(gain, options.fail_under);
  text += fmt::format("{} --fail-under {}: {}\n", reached ? "reached" : "below", options.fail_under,
                      engine::to_text(gain));
  print_result(g, to_json(*certificate), text);
  return reached ? kExitOk : kExitBelow;
}

}  // namespace

void add_certify(CLI::App& app, Globals& g) {
  auto* command = app.add_subcommand(
      "certify", "time a correct program alternately with its baselines on a GPU");
  auto options = std::make_shared<CertifyOptions>();
  auto settings = std::make_shared<Settings>();
  command
      ->add_option("task", options->task,
                   "the task file: a PyTorch module, or a CUDA kernel NAME.cu with its side file")
      ->required();
  command->add_option("folder", options->folder, "the program: a folder with plan.json and sources")
      ->required();
  command->add_option("--baseline", options->baselines,
                      "baselines to compare with; may be repeated (default: the first five below)");
  command
      ->add_option("--processes", options->processes,
                   "number of fresh processes; each repeats the timing")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  add_fail_under(*command, options->fail_under);
  settings->add(*command, {"device", "python", "require_sandbox"});
  add_accuracy(*settings, *command);
  command->footer(
      "cutegen times the program and its baselines alternately in short blocks, in random\n"
      "order: with a cold and a warm L2, in a CUDA graph, and by the host's clock for the whole\n"
      "call. Baselines: eager, eager-fp32 (no TF32 in cuDNN), eager-tf32, compile, compile-max\n"
      "(torch.compile), or your own MODULE:CALLABLE in the task file's folder. The evaluator\n"
      "checks their results like a program's; the table says how accurate each one is. cutegen\n"
      "certifies every shape with a weight.\n"
      "Example: cutegen certify softmax.py out/ --device cuda:0 --baseline eager compile");
  command->callback([options, settings, &g] {
    auto result = run(g, *options, *settings);
    g.exit = result ? *result : report(g, result.error());
  });
}

}  // namespace cutegen::cli
