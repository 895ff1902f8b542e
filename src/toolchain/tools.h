// SPDX-License-Identifier: Apache-2.0
// The versions of the tools that find_tools() found.
//
// Contract: "NAME VERSION" from the metadata of the wheel that contains `file` (by the wheel's
// folder name, "nvidia_cuda_nvcc"). For a file outside a wheel: NAME with its size and time. Empty
// if the file does not exist.
// Example:
//   std::string v = tool_version(paths.ptxas, "ptxas", "nvidia_cuda_nvcc");
#pragma once

#include <filesystem>
#include <string>

namespace cutegen::toolchain {

std::string tool_version(const std::filesystem::path& file, const std::string& name,
                         const std::string& wheel);

}  // namespace cutegen::toolchain
