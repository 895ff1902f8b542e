// SPDX-License-Identifier: Apache-2.0
// The first program of a task that is a CUDA kernel: the kernel as the user wrote it, and a plan
// made from its side file.
//
// Contract: refuses a kernel that is missing or a template, a side file that disagrees with the
// kernel's parameters or with the task, and what kernels may not include or call. An error has the
// line and the remedy. A kernel without extern "C" gets it; nothing else of the source changes.
//
// Example: CG_TRY(KernelProgram source, start_program("norm.cu", task));
#pragma once

#include <filesystem>

#include "core/program.h"

namespace cutegen::eval {

Result<KernelProgram> start_program(const std::filesystem::path& kernel, const Task& task);

}  // namespace cutegen::eval
