// SPDX-License-Identifier: Apache-2.0
// `cutegen check DIR [TASK]`: checks plan, source policy and kernel signatures without compiling.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/program_folder.h"
#include "cli/settings.h"
#include "eval/source/lint.h"
#include "torch/worker.h"

namespace cutegen::cli {
namespace {

struct CheckOptions {
  std::string folder, task;
};

Result<std::vector<Error>> task_problems(const Globals& g, const KernelProgram& program,
                                         const std::string& file, const Settings& settings) {
  CG_TRY(Config config, settings.resolve());
  torch::TorchWorkerOptions options;
  options.python = config.text("python");
  CG_TRY(auto worker, torch::TorchWorker::open(options));
  torch::DescribeOptions describe;
  describe.shrink = false;
  CG_TRY(Task task, worker->describe(g.ctx, file, describe));
  return check_plan(program.plan, task);
}

Json problem_json(const Error& e, bool rule) {
  return {{"rule", rule}, {"message", e.message}, {"where", e.where}, {"remedy", e.remedy}};
}

Result<int> run(const Globals& g, const CheckOptions& options, const Settings& settings) {
  CG_TRY(ProgramFolder folder, ProgramFolder::read(options.folder));
  Json problems = Json::array();
  std::string text;
  bool rule = false;
  auto add = [&](const Error& error, bool is_rule) {
    Error e = folder.placed(error);
    text += e.text() + "\n";
    problems.push_back(problem_json(e, is_rule));
    rule = rule || is_rule;
  };
  for (const eval::LintFinding& f : eval::lint_program(folder.program())) add(f.error, f.rule);
  if (!options.task.empty()) {
    CG_TRY(auto found, task_problems(g, folder.program(), options.task, settings));
    for (const Error& e : found) add(e, false);
  }
  bool fine = problems.empty();
  if (fine)
    text =
        fmt::format("{}: the plan fits the kernels' signatures{}\n", options.folder,
                    options.task.empty() ? " (names of tensors not checked: no task given)" : "");
  print_result(g,
               {{"schema", "cutegen.check.v1"},
                {"program_id", program_id(folder.program())},
                {"ok", fine},
                {"problems", std::move(problems)}},
               text);
  return fine ? kExitOk : rule ? kExitRejected : kExitUser;
}

}  // namespace

void add_check(CLI::App& app, Globals& g) {
  auto* command =
      app.add_subcommand("check", "check a program's plan and source text without compiling");
  auto options = std::make_shared<CheckOptions>();
  auto settings = std::make_shared<Settings>();
  command->add_option("folder", options->folder, "the program: a folder with plan.json and sources")
      ->required();
  command->add_option("task", options->task,
                      "the task file; with it, also check the names of tensors");
  settings->add(*command, {"python"});
  command->footer(
      "cutegen checks the plan against its schema and the kernels' signatures, and the source\n"
      "text against the rules for programs. It compiles nothing and needs no GPU.\n"
      "Example: cutegen check my_relu relu.py");
  command->callback([options, settings, &g] {
    auto result = run(g, *options, *settings);
    g.exit = result ? *result : report(g, result.error());
  });
}

}  // namespace cutegen::cli
