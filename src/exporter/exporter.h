// SPDX-License-Identifier: Apache-2.0
// Exporter: writes a kernel program as files that run without cutegen.
//
// Contract: the exporter evaluates the plan's expressions with resolve_plan(), for the official
// shape and the user's [[shapes]]. The exported code contains the resulting numbers. Only the code
// of ExportKind::source evaluates expressions itself. Kernels write mutated tensors in place, as
// forward() does. If a task cannot be exported, for example because its results are not plain
// tensors, the error names the reason. ExportFiles maps relative file names to the content of the
// files.
//
// Example: CG_TRY(ExportSource s, build_export(ctx, tools, task, program, target));
//   CG_TRY(ExportFiles files, export_files(s, ExportKind::torch));
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/certificate.h"
#include "core/program.h"
#include "toolchain/toolchain.h"

namespace cutegen::exporter {

enum class ExportKind { torch, kernelbench, cpp, source };
Result<ExportKind> export_kind_from(const std::string& name);
Names<ExportKind> enum_names(ExportKind);

struct ExportModule {
  std::string name;  // file name without extension: "kernel.sm_90a"
  std::string ptx, cubin;
  std::string build_id;
  ModuleBuild build = {};
};
struct ExportShape {
  std::string name;
  ShapeCase shape;
  ResolvedPlan plan;  // Launch::module is an index into ExportSource::modules
};
// The GPU for which the exporter compiles the program.
struct ExportTarget {
  DeviceFacts facts;
  std::string gpu;  // "NVIDIA H200"
};

struct ExportSource {
  Task task;
  KernelProgram program;
  ExportTarget target;
  std::string arch, compiler;  // "sm_90a", "NVRTC 13.0.88"
  std::vector<ExportModule> modules;
  std::vector<ExportShape> shapes;
  std::vector<std::string> left_out;  // shapes that the plan rejects, each with the reason
  std::string origin;                 // the exported run ("run 2026...") or folder
  std::optional<Verdict> verdict;
  std::optional<Certificate> certificate;
  // If the task is a CUDA kernel: the user's kernel (`start`), and the text of each header of
  // include/cutegen/ that the program includes, by path.
  std::optional<KernelProgram> start = std::nullopt;
  std::map<std::string, std::string> headers = {};
};

using ExportFiles = std::map<std::string, std::string>;

// Returns an error with the reason if this task cannot be exported.
Result<void> check_exportable(const Task& task);
// Compiles the program for one GPU and evaluates its plan. The caller sets verdict, certificate and
// origin.
Result<ExportSource> build_export(const Context& ctx, const toolchain::ToolPaths& tools,
                                  const Task& task, const KernelProgram& program,
                                  const ExportTarget& target);
// Sets `start` and `headers` in `out`, for ExportKind::source.
Result<void> add_start(const toolchain::ToolPaths& tools, KernelProgram start, ExportSource& out);
// The content of launches.json: all launches as numbers. The exported code reads nothing else.
Result<Json> launches_json(const ExportSource& source);
Result<ExportFiles> export_files(const ExportSource& source, ExportKind kind);
// Writes the files to a new folder, atomically. With `force`, replaces an existing folder if it is
// empty or an earlier export.
Result<void> write_export(const std::string& folder, const ExportFiles& files, bool force);
// Converts a name to one that is valid for files, packages and C: "40_LayerNorm" ->
// "n40_layernorm".
std::string plain_name(const std::string& name);

}  // namespace cutegen::exporter
