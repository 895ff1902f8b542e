// SPDX-License-Identifier: Apache-2.0
// Toolchain: compiles device source to PTX with compile servers, and caches the results.
//
// Contract: a Toolchain owns compile servers (cutegen-compiler processes), one for each
// architecture and prefix of headers (without CuTe, with CuTe's tensors, with all of CuTe). It
// starts a server at the first cache miss and restarts a server that dies. A call of compile()
// returns when the compilation has ended. Several threads may call compile(), and their candidates
// compile in parallel. If a candidate does not compile, the CompileResult has ok = false and a
// digest of the errors. An Error means that cutegen failed or that the user named an unknown
// architecture. The key of the cache is build_id, a hash of program, include closure, compiler
// version, flags and architecture. The cache has a size limit in bytes.
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

// The paths of compiler, tools and headers that find_tools() returns.
struct ToolPaths {
  std::filesystem::path nvrtc;                  // libnvrtc.so.13
  std::vector<std::filesystem::path> includes;  // headers of CuTe, CUDA, CCCL and cutegen
  std::filesystem::path compiler_program;       // cutegen-compiler
  std::filesystem::path cache_dir;
  std::filesystem::path ptxas, nvdisasm;  // empty if not installed; audits are then skipped
};
struct ToolSearch {
  // The interpreter whose packages find_tools() searches; empty: $CUTEGEN_PYTHON, .venv or python3.
  std::string python;
  // The newest CUDA version that the GPU's driver supports, such as 13000; 0 without a GPU.
  int most_cuda = 0;
};
// Searches $CUTEGEN_NVRTC, $CUTEGEN_INCLUDE, $CUTEGEN_PTXAS and $CUTEGEN_NVDISASM, then the
// project's .venv or bundle, then the packages of `python`, then CUDA toolkits. If a file is
// missing, the error names the file.
Result<ToolPaths> find_tools(const ToolSearch& search = {});

struct CompileRequest {
  std::string name;  // the name in messages, such as "kernel.cu"
  std::string source;
  std::vector<std::pair<std::string, std::string>> defines;
  std::string arch;  // "sm_90a"
};

struct CompileResult {
  bool ok = false;
  std::string ptx;
  std::string log;  // the compiler's messages, sanitised, at most 64 KiB
  // The first root error with its source lines, at most 1.5 KB; empty if `ok` is true.
  std::string digest;
  std::string build_id;
  // "forked" (a child of the compile server compiled), "plain" (without a precompiled header), or
  // "warm" (a child continued from a partly parsed program).
  std::string how;
  bool cached = false;
  Nanoseconds elapsed{0};
  // The processor time that a "warm" compile saved.
  Nanoseconds saved{0};
  // The time of a compile that parses the whole program; 0 if unknown.
  Nanoseconds cold{0};
  sandbox::Grade grade;
};

struct ToolchainOptions {
  ToolPaths paths;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  int64_t compile_memory_bytes = int64_t{6} << 30;  // memory limit of one compile
  // Memory limit for partly parsed programs; 0: compile servers keep no programs.
  int64_t warm_memory_bytes = 0;
  Nanoseconds compile_timeout = std::chrono::seconds(120);
  bool use_cache = true, allow_fork = true;
  bool require_sandbox = false;          // fail if any sandbox protection is missing
  std::function<void()> before_compile;  // compile() calls this function at each cache miss
};

class Toolchain {
 public:
  static Result<std::unique_ptr<Toolchain>> open(ToolchainOptions options);
  virtual ~Toolchain() = default;
  virtual Result<CompileResult> compile(const Context& ctx, const CompileRequest& request) = 0;
  // Starts the compile server for sources that use CuTe's tensors only, so that the first candidate
  // for `arch` compiles fast. `programs` names the programs that will follow (empty if unknown). If
  // the cache knows the name from earlier programs, no server starts, because the cache probably
  // has the first program.
  virtual Result<void> warm_up(const Context& ctx, const std::string& arch,
                               const std::string& programs = {}) = 0;
  // Announces about `children` programs similar to the compiled program `request`, and returns at
  // once. If parsing ahead saves time, a compile server parses `request` in the background, and
  // similar programs compile only from the first difference on (docs/compiling.md).
  virtual void expect_children(const CompileRequest& /*request*/, int /*children*/) {}
  // Stops or resumes parsing in the background. Calls can nest.
  virtual void hold_background(bool /*stop*/) {}
  virtual std::string version() const = 0;  // "NVRTC 13.0.88"
};

// Returns the first root error of a compiler log with its source lines, at most 1.5 KB, without the
// compiler's notes about template instantiations.
std::string digest_errors(const std::string& log, const std::string& name,
                          const std::string& source);

}  // namespace cutegen::toolchain
