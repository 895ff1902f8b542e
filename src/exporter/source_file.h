// SPDX-License-Identifier: Apache-2.0
// The export that replaces the user's CUDA source file: a source file with a launcher that has C
// linkage, and a PyTorch operator.
//
// Contract: only for tasks that are CUDA kernels. The launcher's parameters are the parameters of
// the user's kernel, then tensor sizes that the launches need and that are not among those, and
// last the stream. The launcher evaluates the plan's expressions at run time. So it works for every
// size that the plan accepts. For other sizes, it launches the user's kernel. source_files()
// returns an error with the reason if the plan has tensor maps or occupancy().
//
// Example: CG_TRY(ExportFiles files, source_files(source, launches));
#pragma once

#include "exporter/exporter.h"

namespace cutegen::exporter {

// Returns NAME.cu, NAME_op.py, and the headers of include/cutegen/ that NAME.cu includes.
Result<ExportFiles> source_files(const ExportSource& source, const Json& launches);

}  // namespace cutegen::exporter
