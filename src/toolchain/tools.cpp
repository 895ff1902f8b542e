// SPDX-License-Identifier: Apache-2.0
// Where the compiler and the headers lie.
#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "toolchain/toolchain.h"

namespace cutegen {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRemedy = "run 'make setup'";

std::vector<fs::path> entries(const fs::path& dir) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& e : fs::directory_iterator(dir, error)) out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> site_packages(const fs::path& share) {
  std::vector<fs::path> out;
  for (const fs::path& python : entries(share / ".venv" / "lib"))
    if (python.filename().string().starts_with("python")) out.push_back(python / "site-packages");
  return out;
}

// The first folder below nvidia/ of a site-packages that holds `inner`.
fs::path in_wheels(const std::vector<fs::path>& sites, const std::string& inner) {
  std::error_code error;
  for (const fs::path& site : sites)
    for (const fs::path& package : entries(site / "nvidia"))
      if (fs::exists(package / inner, error)) return package;
  return {};
}

Result<fs::path> find_nvrtc(const std::vector<fs::path>& sites) {
  std::error_code error;
  if (const char* set = std::getenv("CUTEGEN_NVRTC")) {
    if (fs::is_regular_file(set, error)) return fs::path(set);
    return user_error("CUTEGEN_NVRTC names '" + std::string(set) + "', which is no file", {},
                      "give the path of libnvrtc.so.13");
  }
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
    fs::path package = in_wheels(sites, std::string("lib/") + name);
    if (!package.empty()) return package / "lib" / name;
  }
  return world_error("there is no NVRTC (libnvrtc.so.13) in the project's .venv",
                     std::string(kRemedy) + ", or set CUTEGEN_NVRTC");
}

Result<std::vector<fs::path>> find_headers(const std::vector<fs::path>& sites) {
  std::vector<fs::path> out;
  std::error_code error;
  if (const char* set = std::getenv("CUTEGEN_INCLUDE")) {
    for (const std::string& dir : split(set, ':')) {
      if (dir.empty()) continue;
      if (!fs::is_directory(dir, error))
        return user_error("CUTEGEN_INCLUDE names '" + dir + "', which is no folder");
      out.emplace_back(dir);
    }
    return out;
  }
  for (const fs::path& site : sites) {
    fs::path cutlass = site / "cutlass_library" / "source" / "include";
    if (fs::exists(cutlass / "cute" / "tensor.hpp", error)) out.push_back(cutlass);
  }
  std::string remedy = std::string(kRemedy) + ", or set CUTEGEN_INCLUDE";
  if (out.empty())
    return world_error("the CuTe headers (wheel nvidia-cutlass) are missing", remedy);
  fs::path runtime = in_wheels(sites, "include/cuda_fp16.h");
  if (runtime.empty())
    return world_error("the CUDA headers (wheel nvidia-cuda-runtime) are missing", remedy);
  out.push_back(runtime / "include");
  fs::path cccl = in_wheels(sites, "include/cccl/cuda/std/cstdint");
  if (cccl.empty())
    return world_error("the C++ headers (wheel nvidia-cuda-cccl) are missing", remedy);
  out.push_back(cccl / "include" / "cccl");
  return out;
}

fs::path find_cache() {
  if (const char* set = std::getenv("CUTEGEN_CACHE")) return fs::path(set) / "compile";
  if (const char* set = std::getenv("XDG_CACHE_HOME"); set && *set == '/')
    return fs::path(set) / "cutegen" / "compile";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return fs::path(home) / ".cache" / "cutegen" / "compile";
  return fs::temp_directory_path() / "cutegen-cache" / "compile";
}

}  // namespace

Result<ToolPaths> find_tools() {
  ToolPaths out;
  CG_TRY(fs::path share, share_dir());
  auto sites = site_packages(share);
  CG_TRY(out.nvrtc, find_nvrtc(sites));
  CG_TRY(out.includes, find_headers(sites));
  out.includes.insert(out.includes.begin(),
                      {share / "include", share / "include" / "cutegen_shims"});
  CG_TRY(out.compiler_program, sister_program("cutegen-compiler"));
  out.cache_dir = find_cache();
  return out;
}

}  // namespace cutegen
