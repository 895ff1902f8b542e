// SPDX-License-Identifier: Apache-2.0
// The export that replaces the user's CUDA source file. It consists of a CUDA source with an extern
// "C" launcher, and a Python file that defines a PyTorch operator.
//
// Contract: source_files() accepts only tasks that are CUDA kernels. The launcher has the
// parameters of the user's kernel, then further tensor sizes that the launches need, and last the
// stream. The launcher evaluates the plan's expressions at run time, so the launcher works for
// every size that the plan accepts. For other sizes, the launcher launches the user's kernel. If
// the plan has tensor maps or occupancy(), the function source_files() returns an error with the
// reason.
//
// Example: CG_TRY(ExportFiles files, source_files(source, launches));
#pragma once

#include "exporter/exporter.h"

namespace cutegen::exporter {

// Returns NAME.cu, NAME_op.py, and the headers of include/cutegen/ that NAME.cu includes.
Result<ExportFiles> source_files(const ExportSource& source, const Json& launches);

}  // namespace cutegen::exporter
