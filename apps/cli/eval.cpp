// SPDX-License-Identifier: Apache-2.0
// `cutegen eval TASK DIR`: judges one kernel program, or one third-party solution.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/units.h"
#include "cli/command.h"
#include "cli/eval_batch.h"
#include "cli/profile_text.h"
#include "cli/program_folder.h"
#include "cli/settings.h"
#include "core/kernel_side.h"
#include "eval/api/client.h"
#include "eval/api/foreign_file.h"

namespace cutegen::cli {
namespace {

struct EvalOptions {
  std::string task, up_to = "timing";
  std::vector<std::string> folders;
  std::string against;
  BatchOptions batch;
  bool profile = false, no_cache = false;
  double seconds = eval::ForeignRequest().seconds;
};

// The object to judge: a kernel program, or a third-party solution in Python.
struct Item {
  KernelProgram program;
  std::optional<torch::ForeignFile> foreign;
};

Result<eval::EvaluatorOptions> evaluator_options(const EvalOptions& options, const Config& config,
                                                 const std::string& device) {
  eval::EvaluatorOptions out;
  CG_TRY(out.device, DeviceName::parse(device));
  out.python = config.text("python");
  out.require_sandbox = config.boolean("require_sandbox");
  out.use_cache = !options.no_cache;
  return out;
}

const char* mark(RungResult result) {
  switch (result) {
    case RungResult::passed:
      return "ok";
    case RungResult::failed:
      return "FAILED";
    case RungResult::skipped:
      return "skipped";
  }
  return "";
}

std::string indented(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += "  " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

// Verdicts of older versions have only the floor.
std::string time_text(const Timing& t) {
  std::string out =
      fmt::format("time {} ({}), floor {}: {:.2f}x", human_ns(t.time_ns), to_string(t.origin),
                  human_ns(t.floor_ns), t.time_ns / std::max(t.floor_ns, 1e-9));
  if (t.reachable_ns > 0)
    out += fmt::format("; reachable {}: {:.2f}x", human_ns(t.reachable_ns),
                       t.time_ns / t.reachable_ns);
  if (t.roofline_ns > 0) out += fmt::format("; roofline {} (an estimate)", human_ns(t.roofline_ns));
  return out + "\n";
}

std::string verdict_text(const Verdict& v, const eval::OpenedTask& opened) {
  std::string real = v.gpu.empty() ? "" : fmt::format(" ({}, driver {})", v.gpu, v.driver);
  std::string out =
      fmt::format("{} on {}{}: {}", opened.task.name, v.device, real, to_string(v.status));
  if (const std::string note = not_compared_text(v); v.status == Status::correct && !note.empty())
    out += "; " + note;
  out += "\n";
  if (!v.math_mode.empty()) out += fmt::format("  {:<12} {}\n", "math mode", v.math_mode);
  for (const RungReport& r : v.rungs)
    out += fmt::format("  {:<12} {:<8} {:>10}  {}\n", to_string(r.rung), mark(r.result),
                       r.elapsed.count() ? human_ns(double(r.elapsed.count())) : "-", r.detail);
  if (v.status != Status::correct) {
    out += v.feedback.headline + "\n";
    if (v.feedback.detail != v.feedback.headline) out += indented(v.feedback.detail);
  }
  if (v.timing) out += time_text(*v.timing);
  if (!v.feedback.bottleneck.empty()) out += v.feedback.bottleneck + "\n";
  if (!v.feedback.resources.empty()) out += v.feedback.resources + "\n";
  if (v.compat)
    out += fmt::format("compat: {} of {} elements differ by {}\n", v.compat->wrong,
                       v.compat->elements, v.compat->rule);
  for (const std::string& s : v.skipped) out += "skipped: " + s + "\n";
  for (const std::string& m : v.marks) out += "mark: " + m + "\n";
  if (v.profile) out += profile_text(*v.profile);
  out += fmt::format("sandbox {}, {} sets judged, {}\n", to_string(v.sandbox.label), v.sets_judged,
                     human_ns(double(v.elapsed.count())));
  return out;
}

Json document_of(const eval::OpenedTask& opened) {
  return {{"schema", "cutegen.eval.v1"},
          {"task", opened.task.name},
          {"device", opened.device},
          {"admission",
           {{"admitted", opened.admission.admitted},
            {"lazy_answers_tried", opened.admission.lazy_answers_tried},
            {"passing", opened.admission.passing},
            {"families", opened.admission.families},
            {"remark", opened.admission.remark}}},
          {"toolchain", opened.toolchain},
          {"torch", opened.torch}};
}

// Headers of cutegen/ may include CuTe themselves.
bool may_use_cute(const KernelProgram& program) {
  for (const auto& [name, text] : program.sources)
    for (const char* folder : {"cute/", "cutlass/", "cutegen/"})
      if (text.find(folder) != std::string::npos) return true;
  return false;
}

Result<Item> read_item(const std::string& path) {
  Item out;
  CG_TRY(out.foreign, eval::find_foreign(path));
  if (out.foreign) return out;
  CG_TRY(ProgramFolder read, ProgramFolder::read(path));
  out.program = read.program();
  return out;
}

Result<Verdict> judge(const Globals& g, eval::EvaluatorClient& client,
                      eval::EvaluateRequest request, const Item& item, double seconds) {
  bool live = !g.quiet && g.error_tty;
  const auto progress = [&](const std::string& text) {
    if (live) fmt::print(stderr, "\r\033[K{}", text);
  };
  request.program = item.program;
  auto verdict =
      item.foreign
          ? client.judge_foreign(
                g.ctx, {.answer = *item.foreign, .up_to = request.up_to, .seconds = seconds},
                progress)
          : client.evaluate(g.ctx, request, progress);
  if (live) fmt::print(stderr, "\r\033[K");
  return verdict;
}

// Returns the exit code of the first program that is not correct.
Result<int> run(const Globals& g, const EvalOptions& options, const Settings& settings) {
  CG_TRY(Config config, settings.resolve());
  CG_TRY(AskedAccuracy asked, asked_accuracy(config));
  eval::EvaluateRequest request;
  CG_TRY(request.up_to, rung_from(options.up_to));
  if (!options.batch.in.empty()) {
    if (!options.folders.empty() || options.profile || !options.against.empty())
      return user_error(
          "--batch reads its programs from its folder and cannot be combined with --profile or "
          "--against",
          "", "write: cutegen eval [TASK] --batch DIR --out DIR");
    BatchOptions batch = options.batch;
    batch.devices = config.text("device");
    CG_TRY(eval::EvaluatorOptions evaluator,
           evaluator_options(options, config, batch.devices.substr(0, batch.devices.find(','))));
    batch.asked = asked;
    return judge_batch(g, batch, options.task, request.up_to, options.seconds, evaluator);
  }
  const bool source_only = is_kernel_file(options.task) && options.folders.empty();
  if (options.task.empty() || (options.folders.empty() && !source_only))
    return user_error(
        "eval needs a task file and the folder of a program", "",
        "write: cutegen eval TASK DIR, cutegen eval KERNEL.cu, or cutegen eval --batch DIR --out "
        "DIR");
  request.profile = options.profile;
  std::vector<Item> items;
  for (const std::string& folder : options.folders) {
    CG_TRY(Item item, read_item(folder));
    if (item.foreign && (options.profile || !options.against.empty()))
      return user_error(
          "--profile and --against are for kernel programs", folder,
          "a third-party solution is always timed against eager: omit --profile and --against");
    items.push_back(std::move(item));
  }
  if (!options.against.empty()) {
    CG_TRY(ProgramFolder other, ProgramFolder::read(options.against));
    request.against = other.program();
  }
  CG_TRY(eval::EvaluatorOptions evaluator,
         evaluator_options(options, config, config.text("device")));
  evaluator.read_cute_ahead =
      source_only || std::ranges::any_of(items, [](const Item& item) {
        return may_use_cute(item.program);  // a third-party solution has no sources
      });
  for (const Item& item : items)
    if (!item.foreign) evaluator.programs += program_id(item.program) + " ";
  CG_TRY(auto client, eval::EvaluatorClient::start(g.ctx, evaluator));
  CG_TRY(eval::OpenedTask opened, client->open_task_as(g.ctx, options.task, asked));
  if (source_only) items.push_back({.program = *opened.start, .foreign = std::nullopt});
  Json document = document_of(opened), list = Json::array();
  std::string text;
  int code = kExitOk;
  for (size_t i = 0; i < items.size(); ++i) {
    CG_TRY(Verdict verdict, judge(g, *client, request, items[i], options.seconds));
    if (items.size() > 1) text += (i ? "\n" : "") + options.folders[i] + "\n";
    text += verdict_text(verdict, opened);
    list.push_back({{"folder", source_only ? options.task : options.folders[i]},
                    {"verdict", to_json(verdict)}});
    if (code == kExitOk) code = exit_code(verdict.status);
  }
  document["verdicts"] = std::move(list);
  print_result(g, document, text);
  return code;
}

}  // namespace

void add_eval(CLI::App& app, Globals& g) {
  auto* command = app.add_subcommand("eval", "judge a kernel program: compile, check, time");
  auto options = std::make_shared<EvalOptions>();
  auto settings = std::make_shared<Settings>();
  command->add_option(
      "task", options->task,
      "the task file: a PyTorch module; or a CUDA kernel NAME.cu with its side file.\n"
      "If you give no program, cutegen judges the CUDA kernel itself");
  command->add_option(
      "folder", options->folders,
      "the program: a folder with plan.json and sources; or a third-party solution,\n"
      "a .py file with class ModelNew; or several of these");
  command->add_option("--batch", options->batch.in,
                      "judge every program in this folder; each entry is a folder with plan.json,\n"
                      "sources and task.py (not needed if TASK is given)");
  command->add_option("--out", options->batch.out,
                      "with --batch: folder for the verdicts, one file per program");
  command->add_flag("--again", options->batch.again,
                    "with --batch: also judge programs that already have a verdict");
  command
      ->add_option("--evaluators", options->batch.evaluators,
                   "with --batch: evaluators per device (default: up to 3 on a GPU, else 1);\n"
                   "give 1 if a task fills the GPU's memory")
      ->check(CLI::Range(1, 16));
  command->add_option(
      "--up-to", options->up_to,
      "stop after this step: lint, compile, audit, load, correctness, timing or profile");
  command->add_flag("--profile", options->profile,
                    "show what limits each kernel, its hot lines with remarks, and counters");
  command->add_option("--against", options->against,
                      "on a GPU: time the program alternately with this other, correct program");
  command
      ->add_option(
          "--seconds", options->seconds,
          "for a .py file: time limit for its import, which builds its kernels (default 300);\n"
          "each call may take 60 s")
      ->check(CLI::Range(0.1, 3600.0));
  command->add_flag("--no-cache", options->no_cache, "compile again instead of using the cache");
  settings->add(*command, {"device", "python", "require_sandbox"});
  add_accuracy(*settings, *command);
  command->footer(
      "cutegen checks the plan and the source, compiles the program, compares its results with\n"
      "the float64 truth on secret inputs at several shapes, and times it.\n"
      "Example: cutegen eval relu.py out/ --profile\n"
      "A third-party solution (load_inline, Triton, ...) runs in a process of its own. Its\n"
      "verdict is labelled foreign, and it cannot be certified.\n"
      "Example: cutegen eval relu.py modelnew.py --device cuda:0\n"
      "With --batch, a broken entry gets an error and the others are judged. After an\n"
      "interruption, run the same batch again to continue. For several GPUs give --device\n"
      "cuda:0,cuda:1.\n"
      "Example: cutegen eval --batch proposed/ --out verdicts/ --device cuda:0\n"
      "Exit codes: 0 correct, 3 failed, 4 rejected, 5 unsupported, 6 aborted");
  command->callback([options, settings, &g] {
    auto result = run(g, *options, *settings);
    g.exit = result ? *result : report(g, result.error());
  });
}

}  // namespace cutegen::cli
