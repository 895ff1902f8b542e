// SPDX-License-Identifier: Apache-2.0
// A kernel whose launch is in a host function of its file, not in the side file.
//
// Contract: completes the side file's plan with the launch that the host function describes: the
// kernel, its arguments, grid, block, shared memory and conditions. Keys of the side file have
// priority. Returns the device code. Errors name a line of the source or of the side file.
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
