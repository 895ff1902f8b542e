// SPDX-License-Identifier: Apache-2.0
// Finds NVRTC and the CUDA headers that are installed on this machine, in the wheels of a Python
// environment and in CUDA toolkits.
//
// Contract: the functions only read folders, and version macros in CUDA headers. They run no
// program, skip files that are missing, and never fail.
//
// Example: for (const Nvrtc& n : nvrtcs(python_sites("python3"), toolkits())) use(n.library);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cutegen::toolchain {

// Returns the folders from which a Python interpreter imports packages: the folders of its
// environment, of its base installation and of the user. If `python` has no slash, python_sites()
// searches PATH for the interpreter.
std::vector<std::filesystem::path> python_sites(const std::string& python);

// Returns $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, and then the folders /usr/local/cuda-*, newest
// first.
std::vector<std::filesystem::path> toolkits();

struct Nvrtc {
  std::filesystem::path library;
  // 13000 for version 13.0, from the name of the builtins library; 0 if unknown.
  int version = 0;
};
Nvrtc nvrtc_at(const std::filesystem::path& library);
// Returns the NVRTC libraries in the order of the folders and, within a folder, newest first.
std::vector<Nvrtc> nvrtcs(const std::vector<std::filesystem::path>& sites,
                          const std::vector<std::filesystem::path>& toolkits);

// A folder of a wheel or toolkit that has cuda_fp16.h and all headers that cuda_fp16.h includes.
struct CudaHeaders {
  std::filesystem::path folder;
  // 12040 for version 12.4, from the macro CUDART_VERSION; 0 if unknown.
  int version = 0;
};
std::vector<CudaHeaders> cuda_headers(const std::vector<std::filesystem::path>& sites,
                                      const std::vector<std::filesystem::path>& toolkits);

// Returns the entries of a folder, sorted by name.
std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& dir);

}  // namespace cutegen::toolchain
