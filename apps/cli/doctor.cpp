// SPDX-License-Identifier: Apache-2.0
// `cutegen doctor`: checks this machine and names the command that fixes each problem.
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/doctor_gpu.h"
#include "device/cuda/gpu_info.h"
#include "llm/models.h"
#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"
#include "torch/worker.h"

namespace cutegen::cli {
namespace {

constexpr int64_t kLeastDisk = int64_t{2} << 30;
constexpr int64_t kLeastMemory = int64_t{4} << 30;
constexpr const char* kSetup = "make setup";

const char* word(State state) {
  switch (state) {
    case State::ok:
      return "ok";
    case State::warning:
      return "warning";
    case State::missing:
      return "missing";
  }
  return "missing";
}

Finding check_headers(const toolchain::ToolPaths& paths) {
  for (const char* header : {"cute/tensor.hpp", "cuda_fp16.h", "cuda/std/type_traits"}) {
    bool found = false;
    std::error_code error;
    for (const auto& dir : paths.includes) found |= std::filesystem::exists(dir / header, error);
    if (!found)
      return {.name = "CUDA headers",
              .state = State::missing,
              .detail = fmt::format("no {} in the include folders", header),
              .mend = kSetup};
  }
  return {.name = "CUDA headers",
          .state = State::ok,
          .detail = fmt::format("{} folders", paths.includes.size()),
          .mend = {}};
}

// Without these tools cutegen skips the audit of machine code; everything else works.
Finding check_audit(const toolchain::ToolPaths& paths) {
  std::string missing;
  if (paths.ptxas.empty()) missing = "no ptxas (wheel nvidia-cuda-nvcc)";
  if (paths.nvdisasm.empty())
    missing +=
        std::string(missing.empty() ? "" : ", ") + "no nvdisasm (wheel nvidia-cuda-nvdisasm)";
  if (!missing.empty())
    return {.name = "binary audit", .state = State::warning, .detail = missing, .mend = kSetup};
  return {.name = "binary audit",
          .state = State::ok,
          .detail = "ptxas and nvdisasm at " + paths.ptxas.parent_path().string(),
          .mend = {}};
}

// If no NVRTC fits the driver, simulators still use the newest one.
void check_toolchain(std::vector<Finding>& out, int cuda_version) {
  auto paths = toolchain::find_tools({.most_cuda = cuda_version});
  if (!paths && cuda_version > 0) paths = toolchain::find_tools({});
  if (!paths) {
    const Error& e = paths.error();
    out.push_back({.name = "toolchain",
                   .state = State::missing,
                   .detail = e.message,
                   .mend = e.remedy.empty() ? kSetup : e.remedy});
    return;
  }
  out.push_back(check_nvrtc(*paths, cuda_version));
  out.push_back(check_headers(*paths));
  out.push_back(check_audit(*paths));
  auto made = private_dir(paths->cache_dir);
  bool writable = made && ::access(paths->cache_dir.c_str(), W_OK) == 0;
  out.push_back({.name = "cache folder",
                 .state = writable ? State::ok : State::missing,
                 .detail = paths->cache_dir.string() + (writable ? "" : " is not writable"),
                 .mend = writable ? "" : "chmod u+rwx " + paths->cache_dir.string()});
}

// On the GPU, torch provides baselines, certificates and values at large shapes.
Finding check_torch(const Context& ctx, bool gpu) {
  if (auto over = ctx.check("looking for PyTorch"); !over)
    return {.name = "Python and PyTorch",
            .state = State::missing,
            .detail = over.error().message,
            .mend = {}};
  auto worker = torch::TorchWorker::open({});
  if (worker && gpu && (*worker)->version().find("+cpu") != std::string::npos)
    return {
        .name = "Python and PyTorch",
        .state = State::warning,
        .detail =
            (*worker)->version() +
            " has no CUDA: on cuda: devices cutegen cannot time baselines, certify or compare "
            "large outputs",
        .mend =
            "install a torch with CUDA (pip) and name its interpreter: --python PATH, or export "
            "CUTEGEN_PYTHON=PATH"};
  if (worker)
    return {.name = "Python and PyTorch",
            .state = State::ok,
            .detail = (*worker)->version(),
            .mend = {}};
  const Error& e = worker.error();
  return {.name = "Python and PyTorch",
          .state = State::missing,
          .detail = e.message,
          .mend = e.remedy.empty() ? std::string(kSetup) + ", or name an interpreter: --python"
                                   : e.remedy};
}

Finding check_disk() {
  std::error_code error;
  auto here = std::filesystem::current_path(error);
  struct statvfs info{};
  if (error || ::statvfs(here.c_str(), &info) != 0)
    return {.name = "disk",
            .state = State::warning,
            .detail = "cannot read the free disk space",
            .mend = "run in another folder"};
  auto free = int64_t(info.f_bavail * info.f_frsize);
  bool enough = free >= kLeastDisk;
  return {.name = "disk",
          .state = enough ? State::ok : State::warning,
          .detail = human(Bytes{free}) + " free here",
          .mend = enough ? "" : "free at least " + human(Bytes{kLeastDisk})};
}

// The providers whose keys the advice names.
const std::set<std::string> kWellKnown{"openai", "anthropic"};

// Tells which providers have a key; never shows the key.
Finding check_models() {
  std::vector<std::string> with, variables;
  for (const llm::ProviderState& p : llm::provider_states()) {
    if (p.key_present) with.push_back(p.provider + " (" + p.key_variable + ")");
    if (kWellKnown.contains(p.provider)) variables.push_back(p.key_variable);
  }
  if (!with.empty())
    return {
        .name = "models", .state = State::ok, .detail = "keys for " + join(with, ", "), .mend = {}};
  return {
      .name = "models",
      .state = State::ok,
      .detail =
          "no keys; --model builtin, relay:DIR and your own servers need none (variables for the "
          "others: " +
          join(variables, ", ") + ")",
      .mend = {}};
}

// MemAvailable of /proc/meminfo, which includes reclaimable caches; 0 if unknown.
int64_t memory_available() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (in >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(in, unit);
  }
  return 0;
}

Finding check_machine() {
  int64_t memory = memory_available();
  bool enough = memory >= kLeastMemory;
  return {.name = "cores and memory",
          .state = enough ? State::ok : State::warning,
          .detail = fmt::format("{} cores, {} of memory available",
                                std::thread::hardware_concurrency(), human(Bytes{memory})),
          .mend = enough ? "" : "close other programs: tasks may run out of memory"};
}

std::string as_text(const std::vector<Finding>& findings, bool usable) {
  std::string out;
  for (const Finding& f : findings) {
    out += fmt::format("{:<8} {:<19} {}\n", word(f.state), f.name, f.detail);
    if (!f.mend.empty()) out += fmt::format("{:<8} {:<19} -> {}\n", "", "", f.mend);
  }
  out += usable ? "Ready: cutegen optimize tasks/softmax.py\n"
                : "Not ready: fix what is missing, then run cutegen doctor again.\n";
  return sanitize(out, 64 << 10);
}

Json as_json(const std::vector<Finding>& findings, bool usable) {
  Json checks = Json::array();
  for (const Finding& f : findings)
    checks.push_back(
        {{"name", f.name}, {"state", word(f.state)}, {"detail", f.detail}, {"mend", f.mend}});
  return {{"schema", "cutegen.doctor.v1"}, {"ready", usable}, {"checks", checks}};
}

void doctor(Globals& g) {
  std::vector<Finding> findings{check_machine(), check_disk()};
  check_sandbox(findings);
  GpusSeen gpus;
  Finding driver = check_driver(gpus);
  check_toolchain(findings, gpus.cuda_version);
  findings.push_back(check_torch(g.ctx, !gpus.uuids.empty()));
  findings.push_back(driver);
  findings.push_back(check_counters(g.ctx, gpus));
  findings.push_back(check_models());
  if (g.ctx.stopped()) {
    g.exit = kExitInterrupted;
    return;
  }
  bool usable = true;
  for (const Finding& f : findings) usable &= f.state != State::missing;
  print_result(g, as_json(findings, usable), as_text(findings, usable));
  g.exit = usable ? kExitOk : kExitEnvironment;
}

}  // namespace

void add_doctor(CLI::App& app, Globals& g) {
  CLI::App* command =
      app.add_subcommand("doctor", "check this machine and print the commands that fix it");
  command->footer(
      "Checks cores, memory, disk, sandbox, toolchain, PyTorch, GPU driver and model keys.\n"
      "Exit codes: 0 if this machine can find kernels on sim: devices, else 6.\n"
      "Example: cutegen doctor --json");
  command->callback([&g] { doctor(g); });
}

}  // namespace cutegen::cli
