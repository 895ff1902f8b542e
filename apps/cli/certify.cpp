// SPDX-License-Identifier: Apache-2.0
// `cutegen certify TASK DIR`: a program beside its baselines, measured in fresh processes.
#include <fmt/format.h>

#include <memory>

#include "base/units.h"
#include "cli/command.h"
#include "cli/program_folder.h"
#include "cli/settings.h"
#include "eval/baselines.h"
#include "eval/client.h"
#include "eval/foreign_file.h"

namespace cutegen::cli {
namespace {

struct CertifyOptions {
  std::string task, folder;
  std::vector<std::string> baselines;
  int processes = 2;
  double fail_under = 0;
};

std::string certificate_text(const Certificate& c, const std::string& task) {
  std::string out = fmt::format("{} on {} (driver {}), {}, {} processes\n", task, c.gpu, c.driver,
                                c.torch, c.processes);
  for (const CertifiedMode& m : c.modes) {
    out += fmt::format("  {:<6} {:>10} ({}-{})\n", m.mode, human_ns(m.time_ns), human_ns(m.low_ns),
                       human_ns(m.high_ns));
    for (const PairedRatio& p : m.against)
      out += fmt::format("         {:>10}  {:<12} {:.3f}x ({:.3f}-{:.3f}, {} rounds, {})\n",
                         human_ns(p.other_ns), p.against, p.speedup, p.low, p.high, p.pairs,
                         p.stopped);
  }
  out += fmt::format("floor {}, bound by {}; cold, the processes' ratios differ by up to {:.2f}%\n",
                     human_ns(c.floor_ns), c.bound_by, 100 * c.apart);
  for (const std::string& m : c.missing) out += "missing: " + m + "\n";
  out += fmt::format("sandbox {}, {}\n", c.sandbox.label,
                     human_ns(static_cast<double>(c.elapsed.count())));
  return out;
}

// Below --fail-under against the fastest baseline, cold: exit code 7.
int code_of(const Certificate& c, double fail_under) {
  if (fail_under <= 0 || c.modes.empty()) return kExitOk;
  const PairedRatio* p = hardest(c.modes.front());
  return p && p->speedup >= fail_under ? kExitOk : kExitBelow;
}

Result<int> run(const Globals& g, const CertifyOptions& options, const Settings& settings) {
  CG_TRY(Config config, settings.resolve());
  CertifyRequest request;
  request.processes = options.processes;
  if (!options.baselines.empty()) {
    CG_TRY(request.baselines, baselines_named(options.baselines));
  }
  CG_TRY(auto foreign, find_foreign(options.folder));
  if (foreign)
    return user_error(
        "a foreign answer is never certified: it runs host code in the process that "
        "times it",
        options.folder, "cutegen eval judges it beside eager, labelled foreign");
  CG_TRY(ProgramFolder read, ProgramFolder::read(options.folder));
  request.program = read.program();
  EvaluatorOptions evaluator;
  evaluator.device = config.text("device");
  evaluator.python = config.text("python");
  evaluator.require_sandbox = config.boolean("require_sandbox");
  CG_TRY(auto client, EvaluatorClient::start(g.ctx, evaluator));
  CG_TRY(OpenedTask opened, client->open_task(g.ctx, options.task));
  const bool live = !g.quiet && g.error_tty;
  auto certificate = client->certify(g.ctx, request, [&](const std::string& text) {
    if (live) fmt::print(stderr, "\r\033[K{}", text);
  });
  if (live) fmt::print(stderr, "\r\033[K");
  if (!certificate) return fail(certificate.error());
  print_result(g, to_json(*certificate), certificate_text(*certificate, opened.task.name));
  return code_of(*certificate, options.fail_under);
}

}  // namespace

void add_certify(CLI::App& app, Globals& g) {
  auto* command =
      app.add_subcommand("certify", "time a correct program beside its baselines, on a GPU");
  auto options = std::make_shared<CertifyOptions>();
  auto settings = std::make_shared<Settings>();
  command->add_option("task", options->task, "the task file (a PyTorch module)")->required();
  command->add_option("folder", options->folder, "the program: plan.json and sources")->required();
  command->add_option("--baseline", options->baselines,
                      "what it is compared with; may be repeated (default: the first four)");
  command->add_option("--processes", options->processes, "fresh processes")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  command->add_option("--fail-under", options->fail_under,
                      "exit code 7 below this ratio against the fastest baseline, cold");
  settings->add(*command, {"device", "python", "require_sandbox"});
  command->footer(
      "Program and baselines take turns in short blocks, in an order drawn anew: with a cold\n"
      "and a warm L2, in a CUDA graph, and by the host's clock for the whole call.\n"
      "Baselines: eager, eager-tf32, compile, compile-max (torch.compile), or MODULE:CALLABLE of\n"
      "yours beside the task file.\n"
      "Example: cutegen certify softmax.py out/ --device cuda:0 --baseline eager compile");
  command->callback([options, settings, &g] {
    auto result = run(g, *options, *settings);
    g.exit = result ? *result : report(g, result.error());
  });
}

}  // namespace cutegen::cli
