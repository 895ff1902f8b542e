// SPDX-License-Identifier: Apache-2.0
#include "toolchain/ncu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "sandbox/sandbox.h"
#include "toolchain/host_places.h"
#include "toolchain/ncu_report.h"

namespace cutegen::toolchain {
namespace fs = std::filesystem;
namespace {

constexpr auto kVersionLimit = std::chrono::seconds(10);
constexpr int kLeastYear = 2022, kLeastRelease = 3;  // the first release that supports Hopper
constexpr const char* kInstall =
    "install Nsight Compute (apt-get install cuda-nsight-compute-13-0, or from "
    "https://developer.nvidia.com/nsight-compute), or name it: CUTEGEN_NCU=/path/to/ncu";

bool runs(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> places() {
  std::vector<fs::path> out;
  const char* path = std::getenv("PATH");
  for (const std::string& dir : split(path ? path : "/usr/bin:/bin", ':'))
    if (dir.starts_with('/')) out.push_back(fs::path(dir) / "ncu");
  for (const fs::path& toolkit : toolkits()) out.push_back(toolkit / "bin/ncu");
  auto releases = sorted_entries("/opt/nvidia/nsight-compute");
  for (auto at = releases.rbegin(); at != releases.rend(); ++at) out.push_back(*at / "ncu");
  return out;
}

Result<fs::path> find_program() {
  if (const char* named = std::getenv("CUTEGEN_NCU"); named && *named) {
    if (*named == '/' && runs(named)) return fs::path(named);
    return world_error("CUTEGEN_NCU is not a program: " + sanitize(named, 200),
                       "give the full path of ncu");
  }
  for (const fs::path& place : places())
    if (runs(place)) return place;
  return world_error("ncu (Nsight Compute) is not on this machine", kInstall);
}

bool is_old(const std::string& version) {
  int year = 0, release = 0;
  std::sscanf(version.c_str(), "%d.%d", &year, &release);
  return year < kLeastYear || (year == kLeastYear && release < kLeastRelease);
}

}  // namespace

Result<NcuTool> find_ncu(const Context& ctx) {
  CG_TRY(fs::path path, find_program());
  sandbox::SpawnSpec spec{.argv = {path.string(), "--version"},
                          .env = sandbox::scrubbed_environment()};
  spec.isolation = {.namespaces = true, .no_network = true};
  spec.limits = {.cpu_seconds = 10};
  CG_TRY(sandbox::Child child, sandbox::spawn(spec));
  auto status = child.wait(ctx.with_timeout(kVersionLimit));
  CG_CHECK(ctx.check("asking ncu for its version"));
  const std::string version = read_ncu_version(child.error_text());
  if (!status || version.empty())
    return world_error(path.string() + " does not print the version of ncu", kInstall);
  if (is_old(version))
    return world_error("ncu " + version + " at " + path.string() + " is too old", kInstall);
  return NcuTool{.path = path, .version = version};
}

}  // namespace cutegen::toolchain
