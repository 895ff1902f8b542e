// SPDX-License-Identifier: Apache-2.0
// Starts processes of a tool (ptxas) in advance, so that the start-up work is done when an input
// arrives.
//
// A spare is a process of the tool with the library apps/gate preloaded, which stops the tool when
// it opens its input file for the `opening`-th time. At earlier openings, the tool reads `filler`.
// A spare has the same sandbox and limits as any run of the tool.
//
// Contract: run() passes the input to a waiting spare. If no spare becomes ready within a short
// time, run() starts a new process of the tool, which gives the same output. A spare handles only
// one input; after that, a background thread starts the next spare. A tool that never stops at an
// opening always runs in a new process. Thread-safe.
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
  int opening = 1;     // at which opening of its input the tool stops, from 1
  std::string filler;  // what the tool reads at earlier openings
};

class ToolSpares {
 public:
  // `call` must not contain an input.
  ToolSpares(ToolCall call, Gate gate, size_t count);
  ~ToolSpares();
  ToolSpares(const ToolSpares&) = delete;
  ToolSpares& operator=(const ToolSpares&) = delete;

  Result<ToolRun> run(const Context& ctx, std::string_view input);
  size_t served() const { return served_; }  // number of inputs that spares handled

 private:
  struct Spare {
    ToolProcess process;
    UniqueFd gate;  // this process's end of the socket to the spare
  };
  Result<Spare> start() const;
  void keep_stocked();
  // Moves a spare that waits for its input to `out`. Returns false if no spare waits.
  bool take(Spare& out);

  ToolCall call_;
  Gate gate_;
  size_t count_;
  std::string library_;  // path of the gate library; empty: not installed
  std::mutex lock_;
  std::condition_variable wake_;
  std::deque<Spare> spares_;
  int failures_ = 0;  // consecutive spares that ended before they waited for an input
  std::atomic<size_t> served_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace cutegen::toolchain
