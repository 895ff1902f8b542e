// SPDX-License-Identifier: Apache-2.0
#include "toolchain/host_places.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/text.h"

namespace cutegen::toolchain {
namespace fs = std::filesystem;
namespace {

constexpr int kMostLines = 2000;  // the macro stands near the beginning

fs::path on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return fs::absolute(name).lexically_normal();
  const char* path = std::getenv("PATH");
  for (const std::string& dir : split(path ? path : "/usr/bin:/bin", ':'))
    if (!dir.empty() && ::access((dir + "/" + name).c_str(), X_OK) == 0)
      return fs::path(dir) / name;
  return {};
}

void add(std::vector<fs::path>& out, const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error) && std::find(out.begin(), out.end(), path) == out.end())
    out.push_back(path);
}

// Adds PREFIX/lib/python3.12/site-packages and its variants.
void add_sites(std::vector<fs::path>& out, const fs::path& prefix) {
  for (const char* lib : {"lib", "lib64", "local/lib"})
    for (const fs::path& python : sorted_entries(prefix / lib)) {
      if (!python.filename().string().starts_with("python3")) continue;
      add(out, python / "site-packages");
      add(out, python / "dist-packages");
    }
}

// Gets 13000 from "libnvrtc-builtins.so.13.0" beside the library.
int version_beside(const fs::path& library) {
  for (const fs::path& entry : sorted_entries(library.parent_path())) {
    int major = 0, minor = 0;
    if (std::sscanf(entry.filename().c_str(), "libnvrtc-builtins.so.%d.%d", &major, &minor) == 2 &&
        library.filename().string().ends_with(".so." + std::to_string(major)))
      return major * 1000 + minor * 10;
  }
  return 0;
}

void add_nvrtcs(std::vector<Nvrtc>& out, const fs::path& dir) {
  std::error_code error;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"})
    if (fs::path at = dir / name; fs::exists(at, error)) out.push_back(nvrtc_at(at));
}

// Reads "#define CUDART_VERSION  12040" in cuda_runtime_api.h.
int version_of_headers(const fs::path& folder) {
  std::ifstream in(folder / "cuda_runtime_api.h");
  int version = 0, lines = 0;
  for (std::string line; lines < kMostLines && std::getline(in, line); ++lines)
    if (std::sscanf(line.c_str(), "#define CUDART_VERSION %d", &version) == 1) return version;
  return 0;
}

void add_headers(std::vector<CudaHeaders>& out, const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "cuda_fp16.h", error))
    out.push_back({.folder = folder, .version = version_of_headers(folder)});
}

}  // namespace

std::vector<fs::path> sorted_entries(const fs::path& dir) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& e : fs::directory_iterator(dir, error)) out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> python_sites(const std::string& python) {
  std::vector<fs::path> out;
  std::error_code error;
  fs::path program = on_path(python);
  if (program.empty()) return out;
  for (const fs::path& at : {program, fs::canonical(program, error)})
    if (!at.empty()) add_sites(out, at.parent_path().parent_path());
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    add_sites(out, fs::path(home) / ".local");
  return out;
}

std::vector<fs::path> toolkits() {
  std::vector<fs::path> out;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* set = std::getenv(variable); set && *set == '/') add(out, set);
  add(out, "/usr/local/cuda");
  std::vector<fs::path> local = sorted_entries("/usr/local");
  for (auto at = local.rbegin(); at != local.rend(); ++at)
    if (at->filename().string().starts_with("cuda-")) add(out, *at);
  return out;
}

Nvrtc nvrtc_at(const fs::path& library) {
  return {.library = library, .version = version_beside(library)};
}

std::vector<Nvrtc> nvrtcs(const std::vector<fs::path>& sites,
                          const std::vector<fs::path>& toolkits) {
  std::vector<Nvrtc> out;
  for (const fs::path& site : sites)
    for (const fs::path& package : sorted_entries(site / "nvidia"))
      add_nvrtcs(out, package / "lib");
  for (const fs::path& toolkit : toolkits) add_nvrtcs(out, toolkit / "lib64");
  return out;
}

std::vector<CudaHeaders> cuda_headers(const std::vector<fs::path>& sites,
                                      const std::vector<fs::path>& toolkits) {
  std::vector<CudaHeaders> out;
  for (const fs::path& site : sites)
    for (const fs::path& package : sorted_entries(site / "nvidia"))
      add_headers(out, package / "include");
  for (const fs::path& toolkit : toolkits) add_headers(out, toolkit / "include");
  return out;
}

}  // namespace cutegen::toolchain
