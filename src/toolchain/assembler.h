// SPDX-License-Identifier: Apache-2.0
// Assembler: turns PTX into machine code and a report on it. ptxas makes a cubin, and nvdisasm
// lists it. Neither needs a GPU or a CUDA toolkit.
// Contract: both tools run sandboxed with limits of memory, time and file size, because PTX is
// hostile. If a tool is missing, or too old for the PTX, the report lacks its part and
// `audit.skipped` says why; this is never an error. If ptxas refuses the PTX or takes too long,
// `ok` is false and `digest` gives the reason; it is the candidate's fault. An Error is a fault of
// cutegen or the end of the Context. The cache key is the hash of the PTX and the tools. After
// warm_up() for an architecture, started tools wait for the next program (tool_spares.h).
// Thread-safe.
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
  std::string digest;  // the assembler's first errors, if not ok
  BinaryAudit audit;   // its rows do not name their module
  // The cubin. Empty if ptxas wrote none, or if the report comes from the cache and the cubin was
  // too large for it.
  std::string code;
  bool cached = false;
  bool listed = true;   // false: list_all() has not added the listing yet
  bool certain = true;  // the same input gives the same report; false after a crash
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
  static Result<std::unique_ptr<Assembler>> open(AssemblerOptions options);
  virtual ~Assembler() = default;
  virtual Result<AssemblyReport> audit(const Context& ctx, const std::string& ptx,
                                       const std::string& arch) = 0;
  // Audits several modules together, which costs little more than one. Reports follow the order of
  // `ptx`.
  Result<std::vector<AssemblyReport>> audit_all(const Context& ctx,
                                                const std::vector<std::string>& ptx,
                                                const std::string& arch);
  // The two steps of audit_all(). assemble_all() makes the machine code; list_all() adds its
  // listing (KernelAudit::code and `skipped`).
  virtual Result<std::vector<AssemblyReport>> assemble_all(const Context& ctx,
                                                           const std::vector<std::string>& ptx,
                                                           const std::string& arch);
  virtual Result<void> list_all(const Context& ctx, const std::vector<std::string>& ptx,
                                const std::string& arch, std::vector<AssemblyReport>& reports);
  // Starts tools in advance, for the first architecture that a caller names.
  virtual void warm_up(const std::string& arch) { (void)arch; }
  virtual std::string version() const = 0;  // "ptxas 13.0.88"; empty: no ptxas
};

}  // namespace cutegen::toolchain
