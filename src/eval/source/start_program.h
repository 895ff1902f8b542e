// SPDX-License-Identifier: Apache-2.0
// The first program of a task that is a CUDA kernel: the user's kernel, unchanged, and a plan made
// from its side file.
//
// Contract: refuses a missing or templated kernel, a side file that disagrees with the kernel's
// parameters or with the task, and includes or calls that the lint forbids. An error has the line
// and the remedy. Adds extern "C" to a kernel without it; changes nothing else in the source.
//
// Example: CG_TRY(KernelProgram source, start_program("norm.cu", task));
#pragma once

#include <filesystem>

#include "core/program.h"

namespace cutegen::eval {

Result<KernelProgram> start_program(const std::filesystem::path& kernel, const Task& task);

}  // namespace cutegen::eval
