// SPDX-License-Identifier: Apache-2.0
// One process of a tool that has done its start-up work and forks for each input.
//
// A run of nvdisasm takes 0.3 s. Nine tenths of that time go into tables that are the same for
// every input. The server is the tool with apps/gate loaded into it: the gate stops the tool when
// it opens its input, and a fork reads each input that arrives.
//
// Contract: run() has the output of a fresh process, with the same sandbox and limits. A fork has
// access only to the files of its input. It may not fork again, and it cannot write to the server.
// The server itself reads no input. start() starts the server in advance. If the server does not
// start, lacks the seccomp filter or dies, run() starts a fresh process. Thread-safe; inputs take
// turns.
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
  // call: without an input. The tool's stdout is its output.
  ToolServer(ToolCall call, Gate gate);
  void start();
  Result<ToolRun> run(const Context& ctx, std::string_view input);
  size_t served() const { return served_; }  // runs that a fork served

 private:
  struct Process {
    ToolProcess tool;
    UniqueFd gate;       // our end
    bool waits = false;  // whether the server has reported that it waits for inputs
  };
  void start_locked();
  std::optional<ToolRun> ask(const Context& ctx, std::string_view input);

  ToolCall call_;
  Gate gate_;
  std::string filter_;  // seccomp filter of a fork; empty: no server
  std::mutex lock_;
  std::optional<Process> process_;
  int failures_ = 0;  // servers in a row that never waited for an input
  std::atomic<size_t> served_ = 0;
};

}  // namespace cutegen::toolchain
