// SPDX-License-Identifier: Apache-2.0
// The output of `cutegen describe`: a page for one file, a table row per file for several.
//
// Contract: plain text; the printer sanitises names from outside. The floor is a bound; the
// roofline beside it is an estimate.
//
// Example: print_text(task_page(task, gpu, {.whole_graph = true}));
#pragma once

#include <string>

#include "core/task.h"
#include "gpu/spec.h"

namespace cutegen::cli {

struct PageOptions {
  bool whole_graph = false;
};

std::string task_page(const Task& task, const GpuSpec& gpu, PageOptions options);
std::string table_head();
std::string table_row(const Task& task, const GpuSpec& gpu, double seconds);
Json task_document(const Task& task, const GpuSpec& gpu, double seconds);

}  // namespace cutegen::cli
