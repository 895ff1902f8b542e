// SPDX-License-Identifier: Apache-2.0
// Finds the compiler, the tools of the audit, and the headers.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "toolchain/host_places.h"
#include "toolchain/tools.h"

#include "toolchain/toolchain.h"

namespace cutegen::toolchain {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRemedy = "run 'make setup'";

using toolchain::sorted_entries;

// The site-packages to search: first the project's, then those of the interpreter that runs the
// torch worker.
std::vector<fs::path> site_packages(const fs::path& share, const std::string& asked) {
  std::error_code error;
  const bool is_there = fs::is_directory(share / ".venv", error);
  std::vector<fs::path> out;
  if (is_there) out = toolchain::python_sites((share / ".venv" / "bin" / "python").string());
  const char* set = std::getenv("CUTEGEN_PYTHON");
  std::string python = !asked.empty() ? asked : set && *set ? set : is_there ? "" : "python3";
  if (!python.empty())
    for (const fs::path& site : toolchain::python_sites(python)) out.push_back(site);
  return out;
}

// The first folder below nvidia/ in a site-packages that holds `inner`.
fs::path in_wheels(const std::vector<fs::path>& sites, const std::string& inner) {
  std::error_code error;
  for (const fs::path& site : sites)
    for (const fs::path& package : sorted_entries(site / "nvidia"))
      if (fs::exists(package / inner, error)) return package;
  return {};
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

struct Compiler {
  // headers: CUDA's headers of the same release as NVRTC; empty if CUTEGEN_INCLUDE is set.
  fs::path nvrtc, headers;
};

// NVRTC 12 cannot parse the CUDA 13 headers of a bundle. The wheels of torch bring matching ones.
fs::path headers_for(const fs::path& share, const std::vector<fs::path>& sites,
                     const std::vector<fs::path>& toolkits, int nvrtc) {
  constexpr int kRelease = 1000, kPacked = 13;
  std::error_code error;
  fs::path packed = share / "headers" / "cuda";
  const bool any = nvrtc == 0;
  if ((any || nvrtc / kRelease == kPacked) && fs::is_directory(packed, error)) return packed;
  for (const auto& h : toolchain::cuda_headers(sites, toolkits))
    if (any || h.version / kRelease == nvrtc / kRelease) return h.folder;
  return {};
}

Result<Compiler> compiler_given(const char* library, const fs::path& share,
                                const std::vector<fs::path>& sites) {
  std::error_code error;
  if (!fs::is_regular_file(library, error))
    return user_error("CUTEGEN_NVRTC names '" + std::string(library) + "', which is not a file", {},
                      "give the path of libnvrtc.so.13");
  const int version = toolchain::nvrtc_at(library).version;
  // The root of the installation: SITE/nvidia/PACKAGE/lib, or a toolkit's lib64.
  const fs::path package = fs::absolute(library).parent_path().parent_path();
  std::vector<fs::path> places{package.parent_path().parent_path()};
  places.insert(places.end(), sites.begin(), sites.end());
  std::vector<fs::path> kits = toolchain::toolkits();
  kits.insert(kits.begin(), package);
  Compiler out{.nvrtc = library, .headers = headers_for(share, places, kits, version)};
  if (out.headers.empty() && !std::getenv("CUTEGEN_INCLUDE"))
    return world_error("CUDA headers are missing for NVRTC " + version_text(version),
                       std::string(kRemedy) +
                           ", install the wheel nvidia-cuda-runtime of the same release, or set "
                           "CUTEGEN_INCLUDE");
  return out;
}

// A driver refuses PTX from a newer NVRTC than its own CUDA version, so this skips such NVRTCs.
Result<Compiler> find_compiler(const fs::path& share, const std::vector<fs::path>& sites,
                               int most_cuda) {
  if (const char* set = std::getenv("CUTEGEN_NVRTC")) return compiler_given(set, share, sites);
  const bool headers_given = std::getenv("CUTEGEN_INCLUDE");
  std::string unfit;
  const std::vector<fs::path> kits = toolchain::toolkits();
  for (const toolchain::Nvrtc& n : toolchain::nvrtcs(sites, kits)) {
    Compiler out{.nvrtc = n.library, .headers = headers_for(share, sites, kits, n.version)};
    const bool too_new = most_cuda > 0 && n.version > most_cuda;
    if (!too_new && (headers_given || !out.headers.empty())) return out;
    unfit += fmt::format("{}{} at {}{}", unfit.empty() ? "" : ", ", version_text(n.version),
                         n.library.string(), too_new ? "" : " (without headers of its release)");
  }
  if (unfit.empty())
    return world_error(
        "NVRTC (libnvrtc.so.13) is neither in the Python environment nor in a toolkit",
        std::string(kRemedy) +
            ", install torch with CUDA or the wheel nvidia-cuda-nvrtc, or set "
            "CUTEGEN_NVRTC");
  const std::string wanted =
      most_cuda > 0 ? " (at most " + version_text(most_cuda) + ", which the GPU's driver accepts)"
                    : "";
  return world_error("no installed NVRTC fits" + wanted + ": " + unfit,
                     "install the wheels nvidia-cuda-nvrtc and nvidia-cuda-runtime (before CUDA 13 "
                     "their names end in -cu12) of one release that the driver accepts, or set "
                     "CUTEGEN_NVRTC and CUTEGEN_INCLUDE");
}

// Finds a program for the audit. The path is empty if it is missing or its variable is empty.
Result<fs::path> find_program(const std::vector<fs::path>& sites, const char* variable,
                              const std::string& name) {
  std::error_code error;
  if (const char* set = std::getenv(variable)) {
    if (*set == 0 || fs::is_regular_file(set, error)) return fs::path(set);
    return user_error(std::string(variable) + " names '" + set + "', which is not a file", {},
                      "give the path of " + name + ", or an empty value to do without");
  }
  fs::path package = in_wheels(sites, "bin/" + name);
  if (!package.empty()) return package / "bin" / name;
  std::vector<fs::path> others = toolchain::toolkits();
  for (const fs::path& site : sites) others.push_back(site / "triton" / "backends" / "nvidia");
  for (const fs::path& at : others)
    if (fs::exists(at / "bin" / name, error)) return at / "bin" / name;
  return fs::path();
}

// `cuda` comes last, because a toolkit has older C++ headers beside its own.
Result<std::vector<fs::path>> find_headers(const fs::path& share,
                                           const std::vector<fs::path>& sites,
                                           const fs::path& cuda) {
  std::vector<fs::path> out;
  std::error_code error;
  if (const char* set = std::getenv("CUTEGEN_INCLUDE")) {
    for (const std::string& dir : split(set, ':')) {
      if (dir.empty()) continue;
      if (!fs::is_directory(dir, error))
        return user_error("CUTEGEN_INCLUDE names '" + dir + "', which is not a folder");
      out.emplace_back(dir);
    }
    return out;
  }
  if (fs::path packed = share / "headers"; fs::is_directory(packed / "cutlass", error))
    return std::vector<fs::path>{packed / "cutlass", packed / "cuda" / "cccl", cuda};
  for (const fs::path& site : sites) {
    fs::path cutlass = site / "cutlass_library" / "source" / "include";
    if (fs::exists(cutlass / "cute" / "tensor.hpp", error)) out.push_back(cutlass);
  }
  std::string remedy = std::string(kRemedy) + ", or set CUTEGEN_INCLUDE";
  if (out.empty())
    return world_error("the CuTe headers (wheel nvidia-cutlass) are missing", remedy);
  fs::path cccl = in_wheels(sites, "include/cccl/cuda/std/cstdint");
  if (cccl.empty())
    return world_error("the C++ headers (wheel nvidia-cuda-cccl) are missing", remedy);
  out.push_back(cccl / "include" / "cccl");
  out.push_back(cuda);
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

std::string tool_version(const fs::path& file, const std::string& name, const std::string& wheel) {
  std::error_code error;
  fs::path real = fs::canonical(file, error);
  for (fs::path dir = real.parent_path(); dir.has_relative_path(); dir = dir.parent_path()) {
    if (dir.filename() != "site-packages") continue;
    // Before CUDA 13, the name of a wheel ends in its release, and each wheel has its own folder.
    const std::string suffix = ".dist-info";
    const bool old = real.parent_path().parent_path().filename().string().starts_with("cuda_");
    const std::string prefix = wheel + (old ? "_cu12-" : "-");
    for (const fs::path& e : sorted_entries(dir)) {
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

Result<ToolPaths> find_tools(const ToolSearch& search) {
  ToolPaths out;
  CG_TRY(fs::path share, share_dir());
  auto sites = site_packages(share, search.python);
  CG_TRY(Compiler compiler, find_compiler(share, sites, search.most_cuda));
  out.nvrtc = std::move(compiler.nvrtc);
  CG_TRY(out.includes, find_headers(share, sites, compiler.headers));
  CG_TRY(out.ptxas, find_program(sites, "CUTEGEN_PTXAS", "ptxas"));
  CG_TRY(out.nvdisasm, find_program(sites, "CUTEGEN_NVDISASM", "nvdisasm"));
  out.includes.insert(out.includes.begin(),
                      {share / "include", share / "include" / "cutegen_shims"});
  CG_TRY(out.compiler_program, sister_program("cutegen-compiler"));
  out.cache_dir = find_cache();
  return out;
}

}  // namespace cutegen::toolchain
