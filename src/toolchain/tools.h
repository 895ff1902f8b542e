// SPDX-License-Identifier: Apache-2.0
// Determines the versions of the tools that find_tools() found.
//
// Contract: tool_version() returns "NAME VERSION". The version comes from the metadata of the wheel
// that contains `file`; `wheel` is the name of the wheel's folder, such as "nvidia_cuda_nvcc". If
// the file is not in a wheel, tool_version() returns the file's size and modification time instead
// of a version. If the file does not exist, it returns "".
//
// Example: std::string v = tool_version(paths.ptxas, "ptxas", "nvidia_cuda_nvcc");
#pragma once

#include <filesystem>
#include <string>

namespace cutegen::toolchain {

std::string tool_version(const std::filesystem::path& file, const std::string& name,
                         const std::string& wheel);

}  // namespace cutegen::toolchain
