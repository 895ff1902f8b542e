// SPDX-License-Identifier: Apache-2.0
// `cutegen describe FILE...`: shows what task files compute, without allocating their tensors.
#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/text.h"
#include "cli/describe_text.h"
#include "cli/settings.h"
#include "core/kernel_side.h"
#include "eval/source/start_program.h"
#include "torch/worker.h"

namespace cutegen::cli {
namespace {

struct DescribeFlags {
  std::vector<std::string> files, shapes;
  std::string gpu = "h200";
  bool graph = false, no_shrink = false;
};

struct Summary {
  size_t described = 0, failed = 0;
  double slowest = 0, total = 0;
  std::string slowest_name;
  int exit = kExitOk;
  Json tasks = Json::array(), failures = Json::array();
};

// Reads "batch=3,dim=5" as constants.
Result<std::vector<std::pair<std::string, int64_t>>> parse_shape(const std::string& text) {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const std::string& part : split(text, ',')) {
    size_t equals = part.find('=');
    std::string name(trim(part.substr(0, equals)));
    std::string digits(equals == std::string::npos ? "" : trim(part.substr(equals + 1)));
    bool number = !digits.empty() && digits.size() <= 18 &&
                  digits.find_first_not_of("0123456789") == std::string::npos;
    if (name.empty() || !number)
      return user_error("'" + part + "' is not NAME=SIZE", "--shape",
                        "name module-level constants: --shape batch=3,dim=5");
    out.emplace_back(std::move(name), std::stoll(digits));
  }
  return out;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// "source kernel  silu.cu: silu(x, out, n), grid [rows, 1, 1], block [256, 1, 1]"
std::string kernel_text(const std::string& file, const Plan& plan) {
  const Step& step = plan.steps.front();
  std::vector<std::string> args, grid, block;
  for (const ArgSpec& arg : step.args)
    args.push_back(arg.name.empty() ? arg.value.text() : arg.name);
  for (const Expr& e : step.grid) grid.push_back(e.text());
  for (const Expr& e : step.block) block.push_back(e.text());
  return fmt::format("source kernel  {}: {}({}), grid [{}], block [{}]\n",
                     std::filesystem::path(file).filename().string(), step.kernel, join(args, ", "),
                     join(grid, ", "), join(block, ", "));
}

void fail_file(const Globals& g, Summary& sum, const std::string& file, const Error& error) {
  ++sum.failed;
  sum.exit = std::max(sum.exit, exit_code(error));
  if (g.json)
    sum.failures.push_back({{"file", file},
                            {"message", error.message},
                            {"where", error.where},
                            {"remedy", error.remedy}});
  else
    report(g, error);
}

Result<void> describe_files(const Globals& g, const DescribeFlags& flags, const GpuSpec& gpu,
                            const AskedAccuracy& asked, torch::TorchWorker& worker, Summary& sum) {
  torch::DescribeOptions options;
  options.asked = asked;
  options.shrink = !flags.no_shrink;
  for (const std::string& text : flags.shapes) {
    CG_TRY(auto shape, parse_shape(text));
    options.user_shapes.push_back(std::move(shape));
  }
  bool table = flags.files.size() > 1;
  if (table && !g.json) print_text(table_head());
  for (const std::string& file : flags.files) {
    CG_CHECK(g.ctx.check("describing " + file));
    auto start = Clock::now();
    auto task = worker.describe(g.ctx, file, options);
    double seconds = seconds_since(start);
    sum.total += seconds;
    std::string kernel;
    if (task && is_kernel_file(file)) {
      auto start = eval::start_program(file, *task);
      if (start)
        kernel = kernel_text(file, start->plan);
      else
        task = tl::unexpected(start.error());
    }
    if (!task) {
      if (g.ctx.stopped()) return fail(task.error());
      fail_file(g, sum, file, task.error());
      continue;
    }
    ++sum.described;
    if (seconds > sum.slowest) sum.slowest = seconds, sum.slowest_name = task->name;
    if (g.json)
      sum.tasks.push_back(task_document(*task, gpu, seconds));
    else
      print_text(table ? table_row(*task, gpu, seconds)
                       : task_page(*task, gpu, {.whole_graph = flags.graph}) + kernel);
  }
  return {};
}

Result<int> run(const Globals& g, const DescribeFlags& flags, const Settings& settings) {
  auto start = Clock::now();
  CG_TRY(Config config, settings.resolve());
  CG_TRY(AskedAccuracy asked, asked_accuracy(config));
  CG_TRY(GpuSpec gpu, find_gpu(flags.gpu));
  torch::TorchWorkerOptions options;
  options.python = config.text("python");
  CG_TRY(auto worker, torch::TorchWorker::open(options));
  double ready = seconds_since(start);
  Summary sum;
  CG_CHECK(describe_files(g, flags, gpu, asked, *worker, sum));
  if (g.json) {
    Json document{{"schema", "cutegen.describe.v1"},
                  {"torch", worker->version()},
                  {"tasks", sum.tasks},
                  {"failed", sum.failures},
                  {"start_ns", ready * 1e9},
                  {"total_ns", seconds_since(start) * 1e9}};
    print_result(g, document, {});
  } else if (flags.files.size() > 1) {
    print_text(
        fmt::format("{} described, {} failed in {:.1f} s: worker ready after {:.1f} s, then "
                    "{:.0f} ms a file, at most {:.0f} ms ({})\n",
                    sum.described, sum.failed, seconds_since(start), ready,
                    sum.total * 1e3 / double(flags.files.size()), sum.slowest * 1e3,
                    sanitize(sum.slowest_name, 100)));
  }
  return sum.exit;
}

}  // namespace

void add_describe(CLI::App& app, Globals& g) {
  auto* command =
      app.add_subcommand("describe", "show what a task computes and how fast a kernel could be");
  auto flags = std::make_shared<DescribeFlags>();
  auto settings = std::make_shared<Settings>();
  command
      ->add_option("file", flags->files,
                   "task files: PyTorch modules, or CUDA kernels NAME.cu with a side file")
      ->required();
  command
      ->add_option("--gpu", flags->gpu, "GPU for the floor and the roofline: a name or a TOML file")
      ->capture_default_str();
  command->add_option("--shape", flags->shapes, "add a shape: NAME=SIZE,... (may be repeated)");
  command->add_flag("--graph", flags->graph, "show the whole operator graph");
  command->add_flag("--no-shrink", flags->no_shrink, "do not derive small and odd test shapes");
  settings->add(*command, {"python"});
  add_accuracy(*settings, *command);
  command->footer(
      "cutegen shows inputs, parameters, attributes, outputs, operators, work, floor, roofline\n"
      "and test shapes. No kernel is faster than the floor. The roofline is an estimate for the\n"
      "operations as written. cutegen traces the module on meta tensors, which have no values,\n"
      "so it computes nothing and allocates no tensor of the official size. For several files,\n"
      "the output is a table.\n"
      "Example: cutegen describe tasks/softmax.py --gpu h100");
  command->callback([flags, settings, &g] {
    auto code = run(g, *flags, *settings);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
