// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "device/cuda/gpu_info.h"
#include "eval/profile/hardware_counters.h"
#include "eval/runner/gpu_slot.h"
#include "sandbox/remedies.h"
#include "sandbox/sandbox.h"
#include "toolchain/ncu.h"

namespace cutegen::cli {
namespace {

constexpr auto kSlotLimit = std::chrono::seconds(5);
constexpr const char* kCounters = "hardware counters";
constexpr const char* kSimulated =
    "only profiles on cuda: devices need it; without it they use the simulator's counters: ";

// Opens a library to read its version.
struct Library {
  void* handle;
  explicit Library(const std::string& path)
      : handle(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle) ::dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  template <class F>
  F* find(const char* name) const {
    return handle ? reinterpret_cast<F*>(::dlsym(handle, name)) : nullptr;
  }
};

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

Finding check_driver(GpusSeen& gpus) {
  const std::string name = "GPU driver";
  auto found = device::cuda::list_devices();
  gpus = {};
  if (!found)
    return {.name = name,
            .state = State::warning,
            .detail = found.error().message,
            .mend = "not needed for sim: devices; for cuda: " + found.error().remedy};
  std::vector<std::string> shown;
  for (const device::cuda::Found& g : *found) {
    gpus.cuda_version = g.identity.cuda_version;
    gpus.uuids.push_back(g.identity.uuid);
    shown.push_back(fmt::format("{} {} ({}, {})", g.facts.name, g.identity.gpu, g.facts.arch,
                                human(Bytes{g.identity.memory_bytes})));
  }
  const std::string version = device::cuda::Watch(gpus.uuids.front()).driver_version();
  return {.name = name,
          .state = State::ok,
          .detail = fmt::format("{}CUDA {}: {}", version.empty() ? "" : version + ", ",
                                cuda_text(gpus.cuda_version), join(shown, "; ")),
          .mend = {}};
}

Finding check_nvrtc(const toolchain::ToolPaths& paths, int cuda_version) {
  Library nvrtc(paths.nvrtc.string());
  auto* version = nvrtc.find<int(int*, int*)>("nvrtcVersion");
  int major = 0, minor = 0;
  if (!version || version(&major, &minor) != 0)
    return {.name = "NVRTC",
            .state = State::missing,
            .detail = "cannot load " + paths.nvrtc.string(),
            .mend = "make setup"};
  const std::string detail = fmt::format("{}.{} at {}", major, minor, paths.nvrtc.string());
  if (cuda_version == 0) return {.name = "NVRTC", .state = State::ok, .detail = detail, .mend = {}};
  const std::string driver = "the driver's CUDA " + cuda_text(cuda_version);
  if (major * 1000 + minor * 10 <= cuda_version)
    return {.name = "NVRTC",
            .state = State::ok,
            .detail = detail + ", not newer than " + driver,
            .mend = {}};
  const int release = cuda_version / 1000;
  const std::string wheel = release < 13 ? fmt::format("-cu{}", release) : "";
  return {.name = "NVRTC",
          .state = State::warning,
          .detail = detail + " is newer than " + driver + ", so cuda: devices cannot use it",
          .mend = fmt::format("update the driver (R580 or later), or: pip install "
                              "'nvidia-cuda-nvrtc{0}<={1}.999' 'nvidia-cuda-runtime{0}<={1}.999'",
                              wheel, cuda_text(cuda_version))};
}

void check_sandbox(std::vector<Finding>& out) {
  const sandbox::Grade grade = sandbox::probe();
  std::vector<std::string> held;
  for (const auto& [what, is] : grade.held)
    if (is) held.push_back(what);
  std::string detail = to_string(grade.label) + std::string(" (") + join(held, ", ") + ")";
  const bool full = grade.label == Protection::full;
  if (!full && !grade.missing.empty()) detail += "; " + grade.missing;
  auto namespaces = grade.held.find("namespaces");
  const bool separate = namespaces != grade.held.end() && namespaces->second;
  out.push_back(
      {.name = "sandbox",
       .state = full ? State::ok : State::warning,
       .detail = detail,
       .mend = full       ? ""
               : separate ? "candidates still run in their own namespaces, but --require-sandbox "
                            "would refuse to run"
                          : sandbox::allow_user_namespaces()});
  out.push_back(
      {.name = "user namespaces",
       .state = separate ? State::ok : State::warning,
       .detail = separate ? "available" : "not available: candidates see this machine's processes",
       .mend = separate ? "" : sandbox::allow_user_namespaces()});
}

Finding check_counters(const Context& ctx, const GpusSeen& gpus) {
  auto tool = toolchain::find_ncu(ctx);
  if (!tool)
    return {.name = kCounters,
            .state = State::warning,
            .detail = tool.error().message,
            .mend = kSimulated + tool.error().remedy};
  const std::string ncu = fmt::format("ncu {} at {}", tool->version, tool->path.string());
  if (gpus.uuids.empty())
    return {
        .name = kCounters, .state = State::ok, .detail = ncu + "; not tried: no GPU", .mend = {}};
  auto slot = eval::GpuSlot::acquire(ctx.with_timeout(kSlotLimit), gpus.uuids.front());
  if (!slot)
    return {.name = kCounters,
            .state = State::warning,
            .detail = ncu + "; not tried: " + slot.error().message,
            .mend = "run cutegen doctor again when the GPU is free"};
  eval::HardwareCounters counters("cuda:0", false);
  auto answer = counters.probe(ctx);
  if (!answer)
    return {.name = kCounters,
            .state = State::warning,
            .detail = ncu + "; " + answer.error().message,
            .mend = {}};
  if (answer->kernels.empty())
    return {.name = kCounters,
            .state = State::warning,
            .detail = ncu + ": " + answer->problem,
            .mend = kSimulated + answer->remedy};
  return {.name = kCounters,
          .state = State::ok,
          .detail = ncu + " reads the counters of cuda:0",
          .mend = {}};
}

}  // namespace cutegen::cli
