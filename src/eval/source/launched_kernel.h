// SPDX-License-Identifier: Apache-2.0
// Reads a kernel that a host function in the same file launches, so that the side file (NAME.toml
// beside the kernel NAME.cu) need not describe the launch.
//
// Contract: read_launched_kernel() adds the kernel and its arguments, grid, block, shared memory
// and conditions to the side file's plan, unless the side file sets these values.
// read_launched_kernel() returns the device code. Errors name a line of the source or of the side
// file.
//
// Example: CG_TRY(text, read_launched_kernel(side, task, "silu.cu", text));
#pragma once

#include <filesystem>
#include <string>

#include "core/kernel_side.h"
#include "core/task.h"

namespace cutegen::eval {

Result<std::string> read_launched_kernel(KernelSide& side, const Task& task,
                                         const std::filesystem::path& kernel,
                                         const std::string& text);

}  // namespace cutegen::eval
