// SPDX-License-Identifier: Apache-2.0
// Where a machine keeps CUDA's parts: the wheels of a Python environment, and toolkits.
//
// Contract: looks at paths and at what headers say of themselves, runs nothing and never fails;
// what is not there is left out.
//
// Example: for (const Nvrtc& n : nvrtcs(python_sites("python3"), toolkits())) use(n.library);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cutegen::toolchain {

// The folders that this interpreter imports packages from: of its environment, of the installation
// below it, of the user. A name without a slash is looked up in PATH.
[[nodiscard]] std::vector<std::filesystem::path> python_sites(const std::string& python);

// $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, then /usr/local/cuda-*, the newest first.
[[nodiscard]] std::vector<std::filesystem::path> toolkits();

struct Nvrtc {
  std::filesystem::path library;
  int version = 0;  // 13000 for 13.0, from the name of its builtins; 0: unknown
};
[[nodiscard]] Nvrtc nvrtc_at(const std::filesystem::path& library);
// In the order of the folders; of one folder the newest first.
[[nodiscard]] std::vector<Nvrtc> nvrtcs(const std::vector<std::filesystem::path>& sites,
                                        const std::vector<std::filesystem::path>& toolkits);

// A folder with cuda_fp16.h and what it includes, of a wheel or a toolkit.
struct CudaHeaders {
  std::filesystem::path folder;
  int version = 0;  // 12040 for 12.4, as they say themselves; 0: unknown
};
[[nodiscard]] std::vector<CudaHeaders> cuda_headers(
    const std::vector<std::filesystem::path>& sites,
    const std::vector<std::filesystem::path>& toolkits);

// The entries of a folder in the order of their names.
[[nodiscard]] std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& dir);

}  // namespace cutegen::toolchain
