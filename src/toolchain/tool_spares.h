// SPDX-License-Identifier: Apache-2.0
// Starts processes of a tool ahead, so that they have finished their start-up work before an input
// arrives.
//
// A spare is the tool with apps/gate loaded into it. The gate stops the tool when it opens its
// input for the `opening`-th time; earlier openings read `filler`. Sandbox and limits are those of
// any run.
//
// Contract: run() gives the input to a waiting spare. If no spare waits within a short time, it
// starts a new process. The output is the same. A spare serves once, and a thread starts the next
// one. A tool that never stops at the gate always runs in a new process. Thread-safe.
//
// Example:
//   ToolSpares spares({.argv = {ptxas, "-arch", "sm_90a", kToolInput}, ...}, {.opening = 1}, 2);
//   CG_TRY(ToolRun run, spares.run(ctx, ptx));
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "toolchain/tool_run.h"

namespace cutegen::toolchain {

struct Gate {
  int opening = 1;     // the tool waits at this opening of its input, counted from 1
  std::string filler;  // what earlier openings read
};

class ToolSpares {
 public:
  // call: without an input.
  ToolSpares(ToolCall call, Gate gate, size_t count);
  ~ToolSpares();
  ToolSpares(const ToolSpares&) = delete;
  ToolSpares& operator=(const ToolSpares&) = delete;

  Result<ToolRun> run(const Context& ctx, std::string_view input);
  size_t served() const { return served_; }  // runs that a spare served

 private:
  struct Spare {
    ToolProcess process;
    UniqueFd gate;  // this process's end
  };
  Result<Spare> start() const;
  void keep_stocked();
  // Takes a spare that waits at its gate. Returns false if there is none.
  bool take(Spare& out);

  ToolCall call_;
  Gate gate_;
  size_t count_;
  std::string library_;  // the gate library; empty: not installed
  std::mutex lock_;
  std::condition_variable wake_;
  std::deque<Spare> spares_;
  int failures_ = 0;  // spares in a row that never reached the gate
  std::atomic<size_t> served_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace cutegen::toolchain
