// SPDX-License-Identifier: Apache-2.0
// The export that replaces a CUDA source file: a program with a launcher in C, and its operator.
//
// Contract: for tasks that are CUDA kernels. The launcher has the source kernel's parameters, then
// each size that the launches need and no parameter gives, then the stream. It evaluates the plan's
// expressions in C++, so it serves every size that the plan accepts; for other sizes it launches
// the source kernel. Refuses plans with tensor maps or occupancy(), and names the reason.
//
// Example: CG_TRY(ExportFiles files, source_files(source, launches));
#pragma once

#include "exporter/exporter.h"

namespace cutegen::exporter {

// NAME.cu, NAME_op.py and the project's headers that they include.
Result<ExportFiles> source_files(const ExportSource& source, const Json& launches);

}  // namespace cutegen::exporter
