// SPDX-License-Identifier: Apache-2.0
// Finds the parts of CUDA on a machine: the wheels of a Python environment, and toolkits.
//
// Contract: only reads paths and version macros in headers. Runs nothing, never fails, and skips
// what is missing.
//
// Example: for (const Nvrtc& n : nvrtcs(python_sites("python3"), toolkits())) use(n.library);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cutegen::toolchain {

// The folders from which this interpreter imports packages: its environment's, its base
// installation's and the user's. Looks up a name without a slash in PATH.
std::vector<std::filesystem::path> python_sites(const std::string& python);

// $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, then /usr/local/cuda-*, the newest first.
std::vector<std::filesystem::path> toolkits();

struct Nvrtc {
  std::filesystem::path library;
  // 13000 for 13.0, from the name of the builtins library. 0: unknown.
  int version = 0;
};
Nvrtc nvrtc_at(const std::filesystem::path& library);
// In the order of the folders; within a folder, newest first.
std::vector<Nvrtc> nvrtcs(const std::vector<std::filesystem::path>& sites,
                          const std::vector<std::filesystem::path>& toolkits);

// A folder of a wheel or toolkit with cuda_fp16.h and the headers that it includes.
struct CudaHeaders {
  std::filesystem::path folder;
  // 12040 for 12.4, from CUDART_VERSION. 0: unknown.
  int version = 0;
};
std::vector<CudaHeaders> cuda_headers(const std::vector<std::filesystem::path>& sites,
                                      const std::vector<std::filesystem::path>& toolkits);

// The entries of a folder, sorted by name.
std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& dir);

}  // namespace cutegen::toolchain
