// SPDX-License-Identifier: Apache-2.0
// What `cutegen export` is given: a run of the store, or a program folder and its task.
//
// Contract: the program of a run is its incumbent, with the verdict; a run without a correct one is
// an error. A folder's verdict.json and certificate.json come along if they are there, and must be
// of this program; a program that failed is refused. The target is the GPU that the program was
// judged on, or the one that --device names.
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
  ExportTarget target;
  int cuda_version = 0;  // of the driver here, if it has the target's GPU
  std::string origin;
  std::optional<Verdict> verdict;
  std::optional<Certificate> certificate;
};

[[nodiscard]] Result<ExportInputs> read_export_inputs(const Globals& g, const ExportWords& words,
                                                      const Config& config);
// A task file that imports what lies beside it cannot be exported as one file.
[[nodiscard]] Result<void> check_stands_alone(const Task& task);

}  // namespace cutegen::cli
