// SPDX-License-Identifier: Apache-2.0
#include "compiler/nvrtc.h"

#include <dlfcn.h>

namespace cutegen::compiler {
namespace fs = std::filesystem;
namespace {

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

// NVRTC opens its builtins library by name only, so load it first from its folder.
void load_builtins(const fs::path& library) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(library.parent_path(), error))
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so"))
      ::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
}

}  // namespace

Result<Nvrtc> Nvrtc::load(const fs::path& library) {
  load_builtins(library);
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = ::dlerror();
    return world_error("cannot load NVRTC: " + std::string(why ? why : library.string()),
                       "run 'make setup', or set CUTEGEN_NVRTC to a libnvrtc.so");
  }
  Nvrtc n;
  bool complete = find(handle, "nvrtcCreateProgram", n.create_) &&
                  find(handle, "nvrtcDestroyProgram", n.destroy_) &&
                  find(handle, "nvrtcCompileProgram", n.compile_) &&
                  find(handle, "nvrtcGetProgramLogSize", n.log_size_) &&
                  find(handle, "nvrtcGetProgramLog", n.get_log_) &&
                  find(handle, "nvrtcGetPTXSize", n.ptx_size_) &&
                  find(handle, "nvrtcGetPTX", n.get_ptx_) &&
                  find(handle, "nvrtcGetErrorString", n.error_string_);
  int (*version)(int*, int*) = nullptr;
  if (!complete || !find(handle, "nvrtcVersion", version))
    return world_error("'" + library.string() + "' is not an NVRTC library");
  find(handle, "nvrtcSetPCHHeapSize", n.set_pch_heap_);
  int major = 0, minor = 0;
  version(&major, &minor);
  n.version_ = std::to_string(major) + "." + std::to_string(minor);
  return n;
}

bool Nvrtc::set_pch_heap(size_t bytes) const {
  return set_pch_heap_ && set_pch_heap_(bytes) == 0;
}

NvrtcOutput Nvrtc::compile(const std::string& source, const std::string& name,
                           const std::vector<std::string>& options) const {
  NvrtcOutput out;
  Program program = nullptr;
  out.status = create_(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (out.status != 0) return out;
  std::vector<const char*> arguments;
  arguments.reserve(options.size());
  for (const std::string& o : options) arguments.push_back(o.c_str());
  out.status = compile_(program, int(arguments.size()), arguments.data());
  size_t size = 0;
  if (log_size_(program, &size) == 0 && size > 1) {
    out.log.resize(size);
    get_log_(program, out.log.data());
    out.log.resize(size - 1);  // without the terminating zero
  }
  if (out.status == 0 && ptx_size_(program, &size) == 0 && size > 1) {
    out.ptx.resize(size);
    get_ptx_(program, out.ptx.data());
    out.ptx.resize(size - 1);
  }
  destroy_(&program);
  return out;
}

}  // namespace cutegen::compiler
