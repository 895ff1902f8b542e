// SPDX-License-Identifier: Apache-2.0
// The inputs of `cutegen export`: a run of the store, or a program folder and its task.
//
// Contract: a run exports its incumbent, with the verdict; a run without a correct program is an
// error. A folder's verdict.json and certificate.json are used if they exist, and must belong to
// its program; a program that failed is refused. The target is the GPU that judged the program, or
// the one that --device names.
//
// Example: CG_TRY(ExportInputs in, read_export_inputs(g, {"last"}, config));
#pragma once

#include "base/config.h"
#include "cli/command.h"
#include "exporter/exporter.h"

namespace cutegen::cli {

struct ExportWords {
  std::string what;  // a run, or a folder
  std::string task, certificate;
};

struct ExportInputs {
  Task task;
  KernelProgram program;
  exporter::ExportTarget target;
  // The newest CUDA version that the driver supports, if the target's GPU is in this machine.
  int cuda_version = 0;
  std::string origin;
  std::optional<Verdict> verdict;
  std::optional<Certificate> certificate;
  std::optional<KernelProgram> start = std::nullopt;  // the source kernel, if the task is one
};

Result<ExportInputs> read_export_inputs(const Globals& g, const ExportWords& words,
                                        const Config& config);
// Refuses a task file that imports other files of its folder, because an export has only one file.
Result<void> check_stands_alone(const Task& task);

}  // namespace cutegen::cli
