// SPDX-License-Identifier: Apache-2.0
// Assembler: assembles PTX and reports on the machine code. The tool ptxas writes a cubin, and the
// tool nvdisasm lists the cubin's instructions. The tools need neither a GPU nor an installed CUDA
// toolkit.
//
// Contract: ptxas and nvdisasm run in the sandbox with limits of memory, time and file size,
// because the PTX may be hostile. If a tool is missing or too old for the PTX, the report lacks the
// results of this tool, and `audit.skipped` says why. A missing tool is never an error. If ptxas
// rejects the PTX or exceeds its time limit, `ok` is false, `digest` gives the reason, and the
// candidate kernel is at fault. An Error means that cutegen failed, or that the call's Context was
// cancelled or timed out. The cache key is a hash of the PTX and the tool versions. The function
// warm_up() starts tool processes in advance, so that they wait for the next program
// (tool_spares.h). Thread-safe.
//
// Example:
//   CG_TRY(auto a, Assembler::open({.paths = paths}));
//   CG_TRY(auto r, a->audit(ctx, ptx, "sm_90a"));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/context.h"
#include "core/audit.h"
#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"

namespace cutegen::toolchain {

struct AssemblyReport {
  bool ok = true;
  std::string digest;  // the assembler's first errors, if `ok` is false
  BinaryAudit audit;   // its entries do not name the module
  // The cubin, or empty if ptxas wrote no cubin, or if the report comes from the cache and the
  // cubin was too large to be cached.
  std::string code;
  bool cached = false;
  bool listed = true;   // false until list_all() has added the listing
  bool certain = true;  // false if a tool crashed, because a new run may succeed
  Nanoseconds elapsed{0};
};

struct AssemblerOptions {
  ToolPaths paths;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  int64_t memory_bytes = int64_t{4} << 30;    // memory limit of each tool
  int64_t output_bytes = int64_t{256} << 20;  // limit of each tool's output file
  Nanoseconds timeout = std::chrono::seconds(60);
  bool use_cache = true;
};

class Assembler {
 public:
  static Result<std::unique_ptr<Assembler>> open(AssemblerOptions options);
  virtual ~Assembler() = default;
  virtual Result<AssemblyReport> audit(const Context& ctx, const std::string& ptx,
                                       const std::string& arch) = 0;
  // Audits several modules together, which takes little more time than the audit of one module. The
  // reports have the order of `ptx`.
  Result<std::vector<AssemblyReport>> audit_all(const Context& ctx,
                                                const std::vector<std::string>& ptx,
                                                const std::string& arch);
  // audit_all() calls assemble_all(), which assembles the modules, and then list_all(), which adds
  // the listing of the machine code (KernelAudit::code and `skipped`).
  virtual Result<std::vector<AssemblyReport>> assemble_all(const Context& ctx,
                                                           const std::vector<std::string>& ptx,
                                                           const std::string& arch);
  virtual Result<void> list_all(const Context& ctx, const std::vector<std::string>& ptx,
                                const std::string& arch, std::vector<AssemblyReport>& reports);
  // Starts tools in advance, for the architecture `arch` of the first call. Later calls have no
  // effect.
  virtual void warm_up(const std::string& arch) { (void)arch; }
  virtual std::string version() const = 0;  // "ptxas 13.0.88"; empty if there is no ptxas
};

}  // namespace cutegen::toolchain
