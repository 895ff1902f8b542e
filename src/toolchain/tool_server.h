// SPDX-License-Identifier: Apache-2.0
// Keeps one process of a tool (nvdisasm) that has finished its start-up work, and forks it for each
// input.
//
// A run of nvdisasm takes 0.3 s, and nine tenths of this time go into tables that are the same for
// every input. The server is a process of the tool with the library apps/gate preloaded, which
// stops the tool when it opens its input file. For each input that arrives, the server forks, and
// the child reads the input.
//
// Contract: run() returns the same output as a new process of the tool, with the same sandbox and
// limits. A child has access only to its own input and output files, may not fork again, and cannot
// write to the server. The server itself reads no input. A caller should call start(), which starts
// the server, before the first input arrives. If the server does not start, has no seccomp filter,
// or dies, run() starts a new process of the tool. A ToolServer is thread-safe, and its server
// handles one input at a time.
//
// Example:
//   ToolServer server({.argv = {nvdisasm, "-b", "SM90a", kToolInput}, ...},
//                     {.opening = 2, .filler = ...});
//   CG_TRY(ToolRun run, server.run(ctx, code));
#pragma once

#include <mutex>
#include <optional>

#include "toolchain/tool_spares.h"

namespace cutegen::toolchain {

class ToolServer {
 public:
  // `call` must not contain an input. The tool must write its output to stdout.
  ToolServer(ToolCall call, Gate gate);
  void start();
  Result<ToolRun> run(const Context& ctx, std::string_view input);
  size_t served() const { return served_; }  // number of inputs that forked children handled

 private:
  struct Process {
    ToolProcess tool;
    UniqueFd gate;       // this process's end of the socket to the server
    bool waits = false;  // the server has reported that it waits for inputs
  };
  void start_locked();
  std::optional<ToolRun> ask(const Context& ctx, std::string_view input);

  ToolCall call_;
  Gate gate_;
  std::string filter_;  // seccomp filter of the children; empty: no server starts
  std::mutex lock_;
  std::optional<Process> process_;
  int failures_ = 0;  // consecutive servers that ended before they waited for an input
  std::atomic<size_t> served_ = 0;
};

}  // namespace cutegen::toolchain
