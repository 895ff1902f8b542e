// SPDX-License-Identifier: Apache-2.0
// Exporter: writes a kernel program as files that run without cutegen.
//
// Contract: the exporter evaluates the plan's expressions with resolve_plan(), for the official
// shape and the user's shapes ([[shapes]] in the side file). The exported code contains the values
// of the expressions, except for ExportKind::source, whose code evaluates the expressions at run
// time. Kernels write mutated tensors in place, as the module's forward() does. If a task cannot be
// exported, for example because its results are not plain tensors, the error names the reason.
// ExportFiles maps relative file names to the content of the files.
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
  std::string name;  // name of the module's files without extension: "kernel.sm_90a"
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
  std::vector<std::string> left_out;  // shapes that the plan rejects, with reasons
  std::string origin;                 // name of the exported run ("run 2026...") or folder
  std::optional<Verdict> verdict;
  std::optional<Certificate> certificate;
  // If the task is a CUDA kernel: `start` is the user's kernel, and `headers` the text, by path, of
  // each header of include/cutegen/ that the program includes.
  std::optional<KernelProgram> start = std::nullopt;
  std::map<std::string, std::string> headers = {};
};

using ExportFiles = std::map<std::string, std::string>;

// Returns an error with the reason if this task cannot be exported.
Result<void> check_exportable(const Task& task);
// Compiles the program for one GPU and evaluates the program's plan. The caller sets the fields
// verdict, certificate and origin.
Result<ExportSource> build_export(const Context& ctx, const toolchain::ToolPaths& tools,
                                  const Task& task, const KernelProgram& program,
                                  const ExportTarget& target);
// Sets the fields `start` and `headers` of `out`, for ExportKind::source.
Result<void> add_start(const toolchain::ToolPaths& tools, KernelProgram start, ExportSource& out);
// Returns the content of launches.json, from which the exported code reads all launches as numbers.
Result<Json> launches_json(const ExportSource& source);
Result<ExportFiles> export_files(const ExportSource& source, ExportKind kind);
// Writes the files to a new folder, atomically. With `force`, replaces an existing folder if this
// folder is empty or an earlier export.
Result<void> write_export(const std::string& folder, const ExportFiles& files, bool force);
// Converts a name to a valid name for files, packages and C: "40_LayerNorm" -> "n40_layernorm".
std::string plain_name(const std::string& name);

}  // namespace cutegen::exporter
