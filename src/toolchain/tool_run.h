// SPDX-License-Identifier: Apache-2.0
// One sandboxed run of a tool that reads a file and writes another: both are memory files.
//
// Contract: `input` is readable and `output` writable for the tool at kInput and kOutput (paths);
// its own stdout is the output where `stdout_is_output`. What the tool does wrong is in ToolRun;
// an Error is our own trouble or a Context that ended. start_tool() and finish_tool() are the two
// halves of run_tool(); the input may be replaced between them.
//
// Example: CG_TRY(auto run, run_tool(ctx, {.argv = {ptxas, "-o", kOutput, kInput}, .input = ptx}));
#pragma once

#include <string>
#include <vector>

#include "base/context.h"
#include "sandbox/sandbox.h"

namespace cutegen::toolchain {

inline constexpr const char* kToolInput = "/proc/self/fd/3";
inline constexpr const char* kToolOutput = "/proc/self/fd/4";

struct ToolCall {
  std::vector<std::string> argv;
  std::string_view input;
  bool stdout_is_output = false;
  std::vector<std::string> readable;     // see sandbox::SpawnSpec
  std::vector<std::string> environment;  // beside PATH and LC_ALL
  int gate = -1;                         // a descriptor of ours that the tool has as 5
  int64_t memory_bytes = 0, output_bytes = 0;
  Nanoseconds timeout{0};
};

struct ToolRun {
  bool ok = false, timed_out = false;
  std::string died;  // "killed by SIGSEGV", "exit code 255"
  std::string output;
  std::string log;  // stderr, sanitised, its last 64 KiB
  bool exited = false;
  sandbox::Grade grade;
};

struct ToolProcess {
  sandbox::Child child;
  UniqueFd input, output;
};

[[nodiscard]] Result<ToolRun> run_tool(const Context& ctx, const ToolCall& call);
[[nodiscard]] Result<ToolProcess> start_tool(const ToolCall& call);
[[nodiscard]] Result<void> replace_input(ToolProcess& process, std::string_view input);
[[nodiscard]] Result<ToolRun> finish_tool(const Context& ctx, ToolProcess process,
                                          const ToolCall& call);

}  // namespace cutegen::toolchain
