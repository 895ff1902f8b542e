// SPDX-License-Identifier: Apache-2.0
// Assembler: PTX in, what its machine code says out. ptxas makes a cubin, nvdisasm lists it; no GPU
// and no CUDA toolkit are needed. The cubin itself is not kept.
//
// Contract: both tools run sandboxed with limits of memory, time and file size, since PTX is
// hostile. A tool that is missing, or too old for the PTX, leaves its part out with the reason in
// `audit.skipped`, never an error. PTX that ptxas refuses, or that takes too long, is ok = false
// with a digest: the candidate's fault. An Error is our own trouble or a Context that ended.
// Reports are cached by the hash of the PTX and the tools. Once warmed up for an architecture, the
// tools wait, started, for the next program (tool_spares.h). Thread-safe.
//
// Example:
//   CG_TRY(auto a, Assembler::open({.paths = paths})); CG_TRY(auto r, a->audit(ctx, ptx,
//   "sm_90a"));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/context.h"
#include "core/audit.h"
#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"

namespace cutegen {

struct AssemblyReport {
  bool ok = true;
  std::string digest;  // the assembler's first errors, if not ok
  BinaryAudit audit;   // its rows name no module
  std::string code;    // the cubin; empty where there is none, or it was too large to keep
  bool cached = false;
  bool listed = true;   // the code was read; else it waits for list_all()
  bool certain = true;  // the same input would give the same report; not so after a death
  Nanoseconds elapsed{0};
};

struct AssemblerOptions {
  ToolPaths paths;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  int64_t memory_bytes = int64_t{4} << 30;    // of each tool
  int64_t output_bytes = int64_t{256} << 20;  // of each tool
  Nanoseconds timeout = std::chrono::seconds(60);
  bool use_cache = true;
};

class Assembler {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Assembler>> open(AssemblerOptions options);
  virtual ~Assembler() = default;
  [[nodiscard]] virtual Result<AssemblyReport> audit(const Context& ctx, const std::string& ptx,
                                                     const std::string& arch) = 0;
  // Several modules at the cost of little more than one; reports in the order of the texts.
  [[nodiscard]] Result<std::vector<AssemblyReport>> audit_all(const Context& ctx,
                                                              const std::vector<std::string>& ptx,
                                                              const std::string& arch);
  // Its two halves: the machine code, and what its listing says (KernelAudit::code, `skipped`).
  [[nodiscard]] virtual Result<std::vector<AssemblyReport>> assemble_all(
      const Context& ctx, const std::vector<std::string>& ptx, const std::string& arch);
  [[nodiscard]] virtual Result<void> list_all(const Context& ctx,
                                              const std::vector<std::string>& ptx,
                                              const std::string& arch,
                                              std::vector<AssemblyReport>& reports);
  // Starts tools ahead for this architecture, and for it alone.
  virtual void warm_up(const std::string& arch) { (void)arch; }
  [[nodiscard]] virtual std::string version() const = 0;  // "ptxas 13.0.88"; empty: none
};

}  // namespace cutegen
