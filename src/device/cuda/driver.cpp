// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "base/text.h"

namespace cutegen::device::cuda {
namespace {

// Folders of the driver in containers, other distributions and WSL, which the loader may not
// search.
constexpr const char* kFolders[] = {
    "/usr/local/nvidia/lib64",   "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
    "/usr/lib64/nvidia",         "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/run/opengl-driver/lib",    "/usr/lib/wsl/lib"};
constexpr int kLeastVersion = 12000;  // has launch attributes and tensor maps
constexpr const char* kInstall =
    "install NVIDIA's driver (R525 or later), or use --device sim:h200";

// Calls f with each function and its exported name, which may end in the function's version.
template <class F>
bool each_function(Driver& d, F f) {
  return f("cuInit", d.init) && f("cuDriverGetVersion", d.version) &&
         f("cuDeviceGetCount", d.device_count) && f("cuDeviceGet", d.device_get) &&
         f("cuDeviceGetName", d.device_name) && f("cuDeviceGetAttribute", d.device_attribute) &&
         f("cuDeviceTotalMem_v2", d.device_memory) && f("cuDeviceGetUuid_v2", d.device_uuid) &&
         f("cuDevicePrimaryCtxRetain", d.context_retain) &&
         f("cuDevicePrimaryCtxRelease_v2", d.context_release) &&
         f("cuCtxSetCurrent", d.context_set) && f("cuCtxSetLimit", d.context_set_limit) &&
         f("cuGetErrorName", d.error_name) && f("cuGetErrorString", d.error_text) &&
         f("cuMemGetInfo_v2", d.memory_info) && f("cuMemGetAllocationGranularity", d.granularity) &&
         f("cuMemAddressReserve", d.reserve) && f("cuMemAddressFree", d.unreserve) &&
         f("cuMemCreate", d.create) && f("cuMemRelease", d.release) && f("cuMemMap", d.map) &&
         f("cuMemUnmap", d.unmap) && f("cuMemSetAccess", d.set_access) &&
         f("cuMemExportToShareableHandle", d.export_memory) &&
         f("cuMemImportFromShareableHandle", d.import_memory) && f("cuMemAlloc_v2", d.allocate) &&
         f("cuMemFree_v2", d.free) && f("cuMemHostAlloc", d.host_allocate) &&
         f("cuMemHostGetDevicePointer_v2", d.host_address) && f("cuMemFreeHost", d.host_free) &&
         f("cuMemcpyHtoD_v2", d.to_device) && f("cuMemcpyDtoH_v2", d.to_host) &&
         f("cuMemcpyDtoDAsync_v2", d.copy) && f("cuMemsetD8Async", d.set8) &&
         f("cuMemsetD16Async", d.set16) && f("cuMemsetD32Async", d.set32) &&
         f("cuMemsetD2D32Async", d.set_2d32) && f("cuStreamCreate", d.stream_create) &&
         f("cuStreamQuery", d.stream_query) && f("cuStreamDestroy_v2", d.stream_destroy) &&
         f("cuStreamBeginCapture_v2", d.capture_begin) && f("cuStreamEndCapture", d.capture_end) &&
         f("cuGraphInstantiateWithFlags", d.graph_instantiate) &&
         f("cuGraphLaunch", d.graph_launch) &&
         f("cuGraphExecDestroy", d.graph_executable_destroy) &&
         f("cuGraphDestroy", d.graph_destroy) && f("cuEventCreate", d.event_create) &&
         f("cuEventRecord", d.event_record) && f("cuEventElapsedTime", d.event_elapsed) &&
         f("cuEventDestroy_v2", d.event_destroy) && f("cuModuleLoadData", d.module_load) &&
         f("cuModuleUnload", d.module_unload) && f("cuModuleGetFunction", d.module_function) &&
         f("cuFuncGetAttribute", d.function_get) && f("cuFuncSetAttribute", d.function_set) &&
         f("cuLinkCreate_v2", d.link_create) && f("cuLinkAddData_v2", d.link_add) &&
         f("cuLinkComplete", d.link_complete) && f("cuLinkDestroy", d.link_destroy) &&
         f("cuLaunchKernelEx", d.launch) && f("cuTensorMapEncodeTiled", d.encode_tiled) &&
         f("cuTensorMapEncodeIm2col", d.encode_im2col);
}

Result<const Driver*> open_driver() {
  // With lazy loading, a first launch may wait for the GPU, which may itself wait at the gate.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  Opened opened = open_library("libcuda.so.1");
  if (!opened.library)
    return world_error("there is no GPU driver here (libcuda.so.1 is not found)", kInstall);
  // The driver finds its assembler by name alone. Load it from the driver's own folder first.
  if (opened.path.find('/') != std::string::npos)
    static_cast<void>(open_library("libnvidia-ptxjitcompiler.so.1"));
  auto driver = std::make_unique<Driver>();
  driver->library = opened.path;
  std::string missing;
  bool complete = each_function(*driver, [&](const char* name, auto& function) {
    using Function = std::remove_reference_t<decltype(function)>;
    function = reinterpret_cast<Function>(::dlsym(opened.library, name));
    if (!function) missing = name;
    return function != nullptr;
  });
  driver->reset_persisting_l2 =
      reinterpret_cast<Status (*)()>(::dlsym(opened.library, "cuCtxResetPersistingL2Cache"));
  int version = 0;
  bool known = driver->version && driver->version(&version) == kOk;
  if (complete && known && version >= kLeastVersion) return driver.release();
  std::string has = known ? fmt::format("it is for CUDA {}.{}", version / 1000, version % 1000 / 10)
                          : "its version is unknown";
  if (!missing.empty()) has += ", and lacks " + missing;
  return world_error(
      fmt::format("the GPU driver {} is too old: {}; cutegen needs 12.0", opened.path, has),
      kInstall);
}

}  // namespace

Opened open_library(const std::string& name) {
  const char* named = std::getenv("CUTEGEN_CUDA_DRIVER");
  std::vector<std::string> places;
  if (named && *named) {
    std::string folder(named);
    folder.resize(folder.rfind('/') + 1);
    places.push_back(name == "libcuda.so.1" ? named : folder + name);
  } else {
    places.push_back(name);
    for (const char* folder : kFolders) places.push_back(std::string(folder) + "/" + name);
  }
  for (const std::string& path : places)
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return {.library = library, .path = path};
  return {};
}

Result<const Driver*> load_driver() {
  static const Result<const Driver*> only = open_driver();  // never unloaded
  return only;
}

std::string Driver::text(Status status) const {
  const char *words = nullptr, *name = nullptr;
  error_text(status, &words);
  error_name(status, &name);
  return sanitize(fmt::format("{} ({})", words ? words : "unknown error",
                              name ? name : std::to_string(status).c_str()),
                  200);
}

Result<void> Driver::check(Status status, const std::string& what) const {
  if (status == kOk) return {};
  std::string remedy;
  if (status == kOutOfMemory)
    remedy = "end other programs on this GPU (nvidia-smi lists them), or use another: cuda:1";
  if (status == kDeviceUnavailable)
    remedy = "another program uses this GPU exclusively; wait for it, or use another: cuda:1";
  if (status == kDriverMismatch) remedy = "restart the machine: its driver was updated";
  return world_error(what + ": " + text(status), remedy);
}

}  // namespace cutegen::device::cuda
