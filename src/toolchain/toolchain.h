// SPDX-License-Identifier: Apache-2.0
// Toolchain: compiles device source to PTX through the compile server, behind a cache.
//
// Contract: a Toolchain owns a few cutegen-compiler processes, one for each architecture and prefix
// of headers (no CuTe, its tensors, all of CuTe). It starts each at the first cache miss and
// restarts it if it dies. compile() blocks. Several threads may call it, and their candidates
// compile in parallel. A candidate's error gives a CompileResult with ok = false and a digest. An
// Error is a fault of cutegen or, for an impossible arch, of the user. The cache is keyed by
// build_id (program, include closure, compiler version, flags, arch) and limited in bytes.
//
// Example:
//   CG_TRY(auto tc, Toolchain::open({.paths = paths}));
//   CG_TRY(auto r, tc->compile(ctx, {"kernel.cu", text, {{"STAGES","4"}}, "sm_90a"}));
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/context.h"
#include "sandbox/sandbox.h"

namespace cutegen::toolchain {

// Where the compiler, the tools and the headers are. find_tools() fills it.
struct ToolPaths {
  std::filesystem::path nvrtc;                  // libnvrtc.so.13
  std::vector<std::filesystem::path> includes;  // CuTe, CUDA runtime, CCCL, cutegen/
  std::filesystem::path compiler_program;       // cutegen-compiler
  std::filesystem::path cache_dir;
  std::filesystem::path ptxas, nvdisasm;  // empty if missing; the audit then skips its part
};
struct ToolSearch {
  // The interpreter whose packages to search. Empty: $CUTEGEN_PYTHON, .venv or python3.
  std::string python;
  // The newest CUDA version that the GPU's driver supports, such as 13000. 0: no GPU.
  int most_cuda = 0;
};
// Searches $CUTEGEN_NVRTC, $CUTEGEN_INCLUDE, $CUTEGEN_PTXAS and $CUTEGEN_NVDISASM, the project's
// .venv or bundle, the packages of `python`, then CUDA toolkits. The error names what is missing.
Result<ToolPaths> find_tools(const ToolSearch& search = {});

struct CompileRequest {
  std::string name;  // shown in messages: "kernel.cu"
  std::string source;
  std::vector<std::pair<std::string, std::string>> defines;
  std::string arch;  // "sm_90a"
};

struct CompileResult {
  bool ok = false;
  std::string ptx;
  std::string log;  // raw, sanitised, capped at 64 KiB
  // The first root error with its source lines, at most 1.5 KB. Empty if ok.
  std::string digest;
  std::string build_id;
  // "forked", "plain", or "warm" (continued from a parsed program).
  std::string how;
  bool cached = false;
  Nanoseconds elapsed{0};
  // Processor time that the parsed program saved.
  Nanoseconds saved{0};
  // How long a compile from the beginning takes. 0: unknown.
  Nanoseconds cold{0};
  sandbox::Grade grade;
};

struct ToolchainOptions {
  ToolPaths paths;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  int64_t compile_memory_bytes = int64_t{6} << 30;  // of one compile
  // Memory for parsed programs; 0: keep no program.
  int64_t warm_memory_bytes = 0;
  Nanoseconds compile_timeout = std::chrono::seconds(120);
  bool use_cache = true, allow_fork = true;
  bool require_sandbox = false;          // full protection or an error
  std::function<void()> before_compile;  // called if the cache does not have a program
};

class Toolchain {
 public:
  static Result<std::unique_ptr<Toolchain>> open(ToolchainOptions options);
  virtual ~Toolchain() = default;
  virtual Result<CompileResult> compile(const Context& ctx, const CompileRequest& request) = 0;
  // Starts the server for sources that only use CuTe's tensors, so that the first candidate for
  // `arch` compiles fast. `programs` identifies the programs: if one of them has compiled before,
  // the cache has the first program, and no server starts. Empty: unknown.
  virtual Result<void> warm_up(const Context& ctx, const std::string& arch,
                               const std::string& programs = {}) = 0;
  // Announces that about `children` programs similar to this one will follow. This one has
  // compiled. If it pays, the compile server parses this program in the background, and the
  // children compile from the place where they differ (docs/compiling.md). Returns at once.
  virtual void expect_children(const CompileRequest& /*request*/, int /*children*/) {}
  // Stops or resumes the background work. Calls can nest.
  virtual void hold_background(bool /*stop*/) {}
  virtual std::string version() const = 0;  // "NVRTC 13.0.88"
};

// The first root error of a compiler log with its source lines, at most 1.5 KB, without template
// noise.
std::string digest_errors(const std::string& log, const std::string& name,
                          const std::string& source);

}  // namespace cutegen::toolchain
