// SPDX-License-Identifier: Apache-2.0
// `cutegen new TASK`: writes a kernel program that compiles, as a starting point for the user's
// kernel.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/settings.h"
#include "recipes/emit/recipes.h"
#include "torch/worker.h"

namespace cutegen::cli {
namespace {

namespace fs = std::filesystem;

struct NewOptions {
  std::string task, folder;
};

Result<void> refuse_existing(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return {};
  if (!fs::is_directory(folder, ignored))
    return user_error("is a file, not a folder", folder.string(),
                      "choose another folder with --out");
  if (!fs::is_empty(folder, ignored))
    return user_error("the folder is not empty, and cutegen overwrites nothing", folder.string(),
                      "choose another folder with --out, or empty it");
  return {};
}

Result<void> run(const Globals& g, const NewOptions& options, const Settings& settings) {
  fs::path folder =
      options.folder.empty() ? fs::path(options.task).stem() : fs::path(options.folder);
  CG_CHECK(refuse_existing(folder));
  CG_TRY(Config config, settings.resolve());
  torch::TorchWorkerOptions worker_options;
  worker_options.python = config.text("python");
  CG_TRY(auto worker, torch::TorchWorker::open(worker_options));
  torch::DescribeOptions describe;
  describe.shrink = false;
  CG_TRY(Task task, worker->describe(g.ctx, options.task, describe));
  CG_TRY(KernelProgram program, recipes::skeleton(task));
  CG_CHECK(save_program(program, folder));
  Json files = Json::array({"plan.json"});
  for (const auto& [name, text] : program.sources) files.push_back(name);
  print_result(g, {{"schema", "cutegen.new.v1"}, {"folder", folder.string()}, {"files", files}},
               fmt::format("wrote a skeleton for {} to {}\n"
                           "next: edit {}, then cutegen eval {} {}\n",
                           task.name, folder.string(), (folder / "kernel.cu").string(),
                           options.task, folder.string()));
  return {};
}

}  // namespace

void add_new(CLI::App& app, Globals& g) {
  auto* command = app.add_subcommand("new", "write a skeleton of a kernel program that compiles");
  auto options = std::make_shared<NewOptions>();
  auto settings = std::make_shared<Settings>();
  command->add_option("task", options->task, "the task file (a PyTorch module)")->required();
  command->add_option("-o,--out", options->folder, "folder to write (default: the task's name)");
  settings->add(*command, {"python"});
  command->footer(
      "The skeleton compiles and launches, but it writes zeros. Put your computation into\n"
      "kernel.cu.\n"
      "Example: cutegen new relu.py --out my_relu && cutegen eval relu.py my_relu");
  command->callback([options, settings, &g] {
    auto result = run(g, *options, *settings);
    g.exit = result ? kExitOk : report(g, result.error());
  });
}

}  // namespace cutegen::cli
