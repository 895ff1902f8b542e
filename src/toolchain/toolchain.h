// SPDX-License-Identifier: Apache-2.0
// Toolchain: device source in, PTX out: through the compile server, behind a cache.
//
// Contract: one Toolchain owns a few cutegen-compiler processes, one for each architecture and
// prefix of headers (with and without CuTe), started on first miss, restarted when they die.
// compile() blocks; it may be called from several threads, and their candidates compile side by
// side. A candidate's error is a CompileResult with ok = false and a digest; only our own trouble
// (and an impossible arch: a user error) is an Error. The cache is keyed by build_id (program,
// include closure, compiler version, flags, arch) and limited in bytes.
//
// Example:
//   CG_TRY(auto tc, Toolchain::open({.paths = paths}));
//   CG_TRY(auto r, tc->compile(ctx, {"kernel.cu", text, {{"STAGES","4"}}, "sm_90a"}));
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/context.h"
#include "sandbox/sandbox.h"

namespace cutegen {

// Where compiler and headers lie: found beside the venv, in the environment, or in the config.
struct ToolPaths {
  std::filesystem::path nvrtc;                  // libnvrtc.so.13
  std::vector<std::filesystem::path> includes;  // CuTe, CUDA runtime, CCCL, cutegen/
  std::filesystem::path compiler_program;       // cutegen-compiler
  std::filesystem::path cache_dir;
  std::filesystem::path ptxas, nvdisasm;  // empty: not there, the audit is skipped
};
struct ToolSearch {
  std::string python;  // whose packages are looked at too; empty: $CUTEGEN_PYTHON, .venv, python3
  int most_cuda = 0;   // what the GPU's driver takes (13000); 0: no GPU is used
};
// Looks in $CUTEGEN_NVRTC, $CUTEGEN_INCLUDE, $CUTEGEN_PTXAS, $CUTEGEN_NVDISASM, then the project's
// .venv or bundle, then the packages of `python`, then CUDA toolkits; says what is missing.
[[nodiscard]] Result<ToolPaths> find_tools(const ToolSearch& search = {});

struct CompileRequest {
  std::string name;  // shown in messages: "kernel.cu"
  std::string source;
  std::vector<std::pair<std::string, std::string>> defines;
  std::string arch;  // "sm_90a"
};

struct CompileResult {
  bool ok = false;
  std::string ptx;
  std::string log;     // raw, sanitised, capped at 64 KiB
  std::string digest;  // first root error with its source lines, <= 1.5 KB; empty if ok
  std::string build_id;
  std::string how;  // "forked" | "plain" | "warm": from where it differs from a program kept read
  bool cached = false;
  Nanoseconds elapsed{0};
  Nanoseconds saved{0};  // by a program kept read, as processor time
  Nanoseconds cold{0};   // what it takes from the beginning; 0: not known
  sandbox::Grade grade;
};

struct ToolchainOptions {
  ToolPaths paths;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  int64_t compile_memory_bytes = int64_t{6} << 30;  // of one compile
  int64_t warm_memory_bytes = 0;                    // of programs kept read; 0: none is kept
  Nanoseconds compile_timeout = std::chrono::seconds(120);
  bool use_cache = true, allow_fork = true;
  bool require_sandbox = false;  // an error where less than full protection holds
};

class Toolchain {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Toolchain>> open(ToolchainOptions options);
  virtual ~Toolchain() = default;
  [[nodiscard]] virtual Result<CompileResult> compile(const Context& ctx,
                                                      const CompileRequest& request) = 0;
  // Starts the server of light sources (CuTe's tensors alone) for `arch`: its first candidate is
  // fast.
  [[nodiscard]] virtual Result<void> warm_up(const Context& ctx, const std::string& arch) = 0;
  // About `children` programs like this one, which has compiled, are to come: where that repays,
  // it is read in the background, and they are compiled from the place where they differ
  // (docs/compiling.md). Returns at once.
  virtual void expect_children(const CompileRequest& /*request*/, int /*children*/) {}
  // Stops and lets go what is done in the background; calls nest.
  virtual void hold_background(bool /*stop*/) {}
  [[nodiscard]] virtual std::string version() const = 0;  // "NVRTC 13.0.88"
};

// The first root error of a compiler log with its source lines, template noise cut, <= 1.5 KB.
[[nodiscard]] std::string digest_errors(const std::string& log, const std::string& name,
                                        const std::string& source);

}  // namespace cutegen
