// SPDX-License-Identifier: Apache-2.0
// Runs a tool once in the sandbox. The tool reads one memory file and writes a second memory file.
//
// Contract: the tool can read `input` at the path kToolInput and write its output to kToolOutput.
// With `stdout_is_output`, the tool's stdout is the output, not kToolOutput. A ToolRun reports
// failures of the tool. An Error means that cutegen failed, or that the call's Context was
// cancelled or timed out. The function run_tool() calls start_tool() and then finish_tool(). After
// start_tool(), replace_input() may change the input.
//
// Example:
//   ToolCall call{.argv = {ptxas, "-o", kToolOutput, kToolInput}, .input = ptx};
//   CG_TRY(auto run, run_tool(ctx, call));
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
  std::vector<std::string> environment;  // environment variables, in addition to PATH and LC_ALL
  int gate = -1;                         // a descriptor that the tool inherits as number 5, or -1
  bool forks = false;                    // whether the tool may start processes
  int64_t memory_bytes = 0, output_bytes = 0;
  Nanoseconds timeout{0};
};

struct ToolRun {
  bool ok = false, timed_out = false;
  std::string died;  // "killed by SIGSEGV", "exit code 255", ...
  std::string output;
  std::string log;  // the last 64 KiB of stderr, sanitised
  bool exited = false;
  sandbox::Grade grade;
};

// Returns a ToolRun that says how the tool ended. The caller must add ToolRun::output and
// ToolRun::log.
ToolRun tool_run_of(const sandbox::ExitStatus& status);

// tool_file() creates a memory file with the content `content`, and tool_text() reads at most
// `most` bytes from a memory file.
Result<UniqueFd> tool_file(const char* name, std::string_view content);
Result<std::string> tool_text(int file, int64_t most);

struct ToolProcess {
  sandbox::Child child;
  UniqueFd input, output;
};

Result<ToolRun> run_tool(const Context& ctx, const ToolCall& call);
Result<ToolProcess> start_tool(const ToolCall& call);
Result<void> replace_input(ToolProcess& process, std::string_view input);
Result<ToolRun> finish_tool(const Context& ctx, ToolProcess process, const ToolCall& call);

}  // namespace cutegen::toolchain
