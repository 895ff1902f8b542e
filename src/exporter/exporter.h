// SPDX-License-Identifier: Apache-2.0
// Exporter: writes a judged kernel program as files that do not need cutegen.
//
// Contract: resolve_plan gives the launches as numbers, for the official shape and the user's own;
// except for ExportKind::source, the exported code evaluates no expression of the plan. Kernels
// write mutated tensors in place, as forward() does. If no export can serve a task (its results are
// not plain tensors), the error names the reason. File names are relative. Texts are complete.
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
  std::string name;  // "kernel.sm_90a", without an extension
  std::string ptx, cubin;
  std::string build_id;
  ModuleBuild build = {};
};
struct ExportShape {
  std::string name;
  ShapeCase shape;
  ResolvedPlan plan;  // Launch::module indexes ExportSource::modules
};
// The GPU that the files are made for.
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
  std::vector<std::string> left_out;  // shapes that the plan rejects, with the reason
  std::string origin;                 // "run 2026...", or a folder
  std::optional<Verdict> verdict;
  std::optional<Certificate> certificate;
  // If the task is a CUDA kernel: the source kernel, and the project's headers that the program
  // includes, by path.
  std::optional<KernelProgram> start = std::nullopt;
  std::map<std::string, std::string> headers = {};
};

using ExportFiles = std::map<std::string, std::string>;

// Returns an error if no export can serve this task; the error names the reason.
Result<void> check_exportable(const Task& task);
// Compiles and resolves the program for one GPU. The caller sets verdict, certificate and origin.
Result<ExportSource> build_export(const Context& ctx, const toolchain::ToolPaths& tools,
                                  const Task& task, const KernelProgram& program,
                                  const ExportTarget& target);
// Adds the source kernel, for ExportKind::source.
Result<void> add_start(const toolchain::ToolPaths& tools, KernelProgram start, ExportSource& out);
// launches.json: all launches as numbers. It is the only input of the generated code.
Result<Json> launches_json(const ExportSource& source);
Result<ExportFiles> export_files(const ExportSource& source, ExportKind kind);
// Writes the files as one new folder, in one step. With `force`, replaces a folder that is empty or
// an earlier export.
Result<void> write_export(const std::string& folder, const ExportFiles& files, bool force);
// A name for files, packages and C: "40_LayerNorm" -> "n40_layernorm".
std::string plain_name(const std::string& name);

}  // namespace cutegen::exporter
