// SPDX-License-Identifier: Apache-2.0
// Nvrtc: NVIDIA's CUDA run-time compiler, loaded as a library at run time.
//
// Contract: load() needs the full path of libnvrtc and takes its builtins library from the same
// folder. compile() never throws and always returns the log. Not thread-safe.
//
// Example: CG_TRY(auto nvrtc, Nvrtc::load(path)); auto out = nvrtc.compile(text, "a.cu", options);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace cutegen::compiler {

struct NvrtcOutput {
  int status = 0;  // nvrtcResult; 0 is success
  std::string ptx, log;
};

class Nvrtc {
 public:
  static Result<Nvrtc> load(const std::filesystem::path& library);
  NvrtcOutput compile(const std::string& source, const std::string& name,
                      const std::vector<std::string>& options) const;
  // Reserves the heap for precompiled headers. False if this NVRTC has none.
  bool set_pch_heap(size_t bytes) const;
  std::string version() const { return version_; }
  const char* status_text(int status) const { return error_string_(status); }

 private:
  using Program = void*;
  int (*create_)(Program*, const char*, const char*, int, const char* const*,
                 const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*get_log_)(Program, char*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*get_ptx_)(Program, char*) = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*set_pch_heap_)(size_t) = nullptr;
  std::string version_;
};

}  // namespace cutegen::compiler
