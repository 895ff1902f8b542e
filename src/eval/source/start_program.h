// SPDX-License-Identifier: Apache-2.0
// Builds the first program of a task that is a CUDA kernel: the user's kernel, and a plan from the
// side file (NAME.toml).
//
// Contract: start_program() refuses a missing or templated kernel, a side file that contradicts the
// kernel's parameters or the task, and includes or calls that the lint forbids. An error names the
// line and the remedy. If the kernel is not extern "C", start_program() adds extern "C".
//
// Example: CG_TRY(KernelProgram source, start_program("norm.cu", task));
#pragma once

#include <filesystem>

#include "core/program.h"

namespace cutegen::eval {

Result<KernelProgram> start_program(const std::filesystem::path& kernel, const Task& task);

}  // namespace cutegen::eval
