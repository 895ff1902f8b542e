// SPDX-License-Identifier: Apache-2.0
#include "cli/export_inputs.h"

#include <filesystem>
#include <regex>

#include "base/file.h"
#include "base/text.h"
#include "cli/program_folder.h"
#include "cli/runs_folder.h"
#include "core/kernel_side.h"
#include "device/cuda/gpu_info.h"
#include "device/sim_facts.h"
#include "eval/source/start_program.h"
#include "torch/worker.h"

namespace cutegen::cli {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostJson = size_t{64} << 20;

// The target is this machine's GPU. If the program was judged on another GPU model, the target is
// that model, with the figures of its file.
Result<void> set_target(const std::string& name, ExportInputs& in) {
  CG_TRY(DeviceName device, DeviceName::parse(name));
  const std::string judged = in.verdict ? in.verdict->gpu : "";
  if (!device.is_gpu()) {
    CG_TRY(GpuSpec gpu, device::simulated_gpu(device));
    in.target = {.facts = device::sim_facts(name, gpu), .gpu = gpu.name};
    return {};
  }
  CG_TRY(const device::cuda::Driver* driver, [&]() -> Result<const device::cuda::Driver*> {
    auto loaded = device::cuda::load_driver();
    return loaded || judged.empty() ? loaded : Result<const device::cuda::Driver*>(nullptr);
  }());
  if (driver) {
    auto found = device::cuda::find_device(*driver, device);
    if (found && (judged.empty() || found->identity.gpu == judged)) {
      in.target = {.facts = found->facts, .gpu = found->identity.gpu};
      in.cuda_version = found->identity.cuda_version;
      return {};
    }
    if (judged.empty()) return fail(found.error());
  }
  CG_TRY(GpuSpec gpu, gpu_of_product(judged));
  in.target = {.facts = device::sim_facts(name, gpu), .gpu = judged};
  return {};
}

Result<std::optional<Json>> json_of(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::optional<Json>();
  CG_TRY(std::string text, read_file(path, kMostJson));
  CG_TRY(Json json, parse_json(text, path.string(), kMostJson));
  return std::optional<Json>(std::move(json));
}

Result<void> check_verdict(const Verdict& v, const std::string& where) {
  if (v.status == Status::correct) return {};
  return user_error(
      std::string("the program was judged '") + to_string(v.status) + "': " + v.feedback.headline,
      where, "export a program that is correct");
}

Result<void> add_certificate(const fs::path& path, bool named, ExportInputs& in) {
  CG_TRY(std::optional<Json> json, json_of(path));
  if (!json && named)
    return user_error("the certificate file does not exist", path.string(),
                      "write one: cutegen certify TASK DIR --device cuda:0 --json > FILE");
  if (!json) return {};
  CG_TRY(Certificate c, read_json<Certificate>(*json));
  if (c.program_id != program_id(in.program))
    return user_error("the certificate belongs to another program", path.string(),
                      "certify this program again");
  in.certificate = std::move(c);
  return {};
}

Result<ExportInputs> from_folder(const Globals& g, const ExportWords& words, const Config& config) {
  ExportInputs in;
  CG_TRY(ProgramFolder read, ProgramFolder::read(words.what));
  in.program = read.program();
  in.origin = "the program in " + fs::path(words.what).lexically_normal().filename().string();
  if (words.task.empty())
    return user_error("a program folder does not name its task", words.what,
                      "give the task file: --task FILE");
  torch::TorchWorkerOptions options;
  options.python = config.text("python");
  CG_TRY(auto worker, torch::TorchWorker::open(options));
  CG_TRY(in.task, worker->describe(g.ctx, words.task, {.shrink = false}));
  if (is_kernel_file(words.task)) {
    CG_TRY(in.start, eval::start_program(words.task, in.task));
  }
  const fs::path at = fs::path(words.what) / "verdict.json";
  CG_TRY(std::optional<Json> json, json_of(at));
  if (json) {
    CG_TRY(Verdict verdict, read_json<Verdict>(*json));
    CG_CHECK(check_verdict(verdict, at.string()));
    if (verdict.program_id == program_id(in.program)) in.verdict = std::move(verdict);
  }
  const bool named = !words.certificate.empty();
  CG_CHECK(add_certificate(
      named ? fs::path(words.certificate) : fs::path(words.what) / "certificate.json", named, in));
  const bool chosen = !in.verdict || !config.setting("device").is_default();
  CG_CHECK(set_target(chosen ? config.text("device") : in.verdict->device, in));
  return in;
}

Result<ExportInputs> from_run(const ExportWords& words, const Config& config) {
  ExportInputs in;
  CG_TRY(auto store, open_runs(config));
  CG_TRY(FoundRun run, find_run(*store, words.what));
  const engine::RunStep* best = run.view.incumbent();
  if (!best || !best->verdict || !run.view.task)
    return fail(
        {.kind = ErrorKind::user,
         .message = "the run has no correct program",
         .where = run.info.id,
         .remedy = "cutegen show " + run.info.id + " says why; cutegen resume continues it"});
  CG_CHECK(check_verdict(*best->verdict, run.info.id));
  if (!words.task.empty())
    return user_error("a run already has its task", "--task",
                      "omit --task, or name a program folder");
  in.program = best->candidate.program;
  in.verdict = best->verdict;
  in.task = run.view.task->task;
  in.start = run.view.task->start;
  in.origin = "run " + run.info.id + ", candidate " + best->candidate.id;
  if (const Certificate* c = run.view.best_certificate()) in.certificate = *c;
  if (!words.certificate.empty()) CG_CHECK(add_certificate(words.certificate, true, in));
  const bool chosen = config.setting("device").is_flag();
  CG_CHECK(set_target(chosen ? config.text("device") : best->verdict->device, in));
  return in;
}

}  // namespace

Result<void> check_stands_alone(const Task& task) {
  static const std::regex import(R"(^\s*(?:from|import)\s+([A-Za-z_]\w*|\.))");
  std::error_code error;
  const fs::path folder = fs::absolute(task.file, error).parent_path();
  for (const std::string& line : split(task.source, '\n')) {
    std::smatch found;
    const std::string start = line.substr(0, 400);
    if (!std::regex_search(start, found, import)) continue;
    const std::string name = found[1];
    if (name == "." || fs::exists(folder / (name + ".py"), error) ||
        fs::exists(folder / name / "__init__.py", error))
      return unsupported_error("the task file imports '" + name +
                                   "' from its folder, but an export contains only the task file",
                               task.file);
  }
  return {};
}

Result<ExportInputs> read_export_inputs(const Globals& g, const ExportWords& words,
                                        const Config& config) {
  std::error_code error;
  const bool folder = fs::is_directory(words.what, error) ||
                      words.what.find('/') != std::string::npos || !words.task.empty();
  CG_TRY(ExportInputs in, folder ? from_folder(g, words, config) : from_run(words, config));
  CG_CHECK(check_stands_alone(in.task));
  return in;
}

}  // namespace cutegen::cli
