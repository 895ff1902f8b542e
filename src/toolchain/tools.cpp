// SPDX-License-Identifier: Apache-2.0
// Where the compiler, its companions and the headers lie.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "toolchain/tools.h"

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

// A program of the audit: an empty path where there is none, or where the variable is empty.
Result<fs::path> find_program(const std::vector<fs::path>& sites, const char* variable,
                              const std::string& name) {
  std::error_code error;
  if (const char* set = std::getenv(variable)) {
    if (*set == 0 || fs::is_regular_file(set, error)) return fs::path(set);
    return user_error(std::string(variable) + " names '" + set + "', which is no file", {},
                      "give the path of " + name + ", or nothing to do without");
  }
  fs::path package = in_wheels(sites, "bin/" + name);
  return package.empty() ? fs::path() : package / "bin" / name;
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

std::string toolchain::tool_version(const fs::path& file, const std::string& name,
                                    const std::string& wheel) {
  std::error_code error;
  fs::path real = fs::canonical(file, error);
  for (fs::path dir = real.parent_path(); dir.has_relative_path(); dir = dir.parent_path()) {
    if (dir.filename() != "site-packages") continue;
    const std::string prefix = wheel + "-", suffix = ".dist-info";
    for (const fs::path& e : entries(dir)) {
      std::string entry = e.filename().string();
      if (entry.starts_with(prefix) && entry.ends_with(suffix))
        return name + " " +
               entry.substr(prefix.size(), entry.size() - prefix.size() - suffix.size());
    }
  }
  struct stat info{};
  if (file.empty() || ::stat(file.c_str(), &info) != 0) return {};
  return fmt::format("{} ({} bytes, {})", name, info.st_size, info.st_mtim.tv_sec);
}

Result<ToolPaths> find_tools() {
  ToolPaths out;
  CG_TRY(fs::path share, share_dir());
  auto sites = site_packages(share);
  CG_TRY(out.nvrtc, find_nvrtc(sites));
  CG_TRY(out.includes, find_headers(sites));
  CG_TRY(out.ptxas, find_program(sites, "CUTEGEN_PTXAS", "ptxas"));
  CG_TRY(out.nvdisasm, find_program(sites, "CUTEGEN_NVDISASM", "nvdisasm"));
  out.includes.insert(out.includes.begin(),
                      {share / "include", share / "include" / "cutegen_shims"});
  CG_TRY(out.compiler_program, sister_program("cutegen-compiler"));
  out.cache_dir = find_cache();
  return out;
}

}  // namespace cutegen
