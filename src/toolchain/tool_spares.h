// SPDX-License-Identifier: Apache-2.0
// Processes of one tool that were started, and have made their tables, before there is an input.
//
// nvdisasm spends nine tenths of its 0.3 s on tables that do not depend on what it reads. A spare
// is the tool with apps/gate in it: it waits where it opens its input for the `opening`-th time
// (before that it is shown `filler`), in the same sandbox and with the same limits as any run.
//
// Contract: run() gives the input to a spare that waits, or to a fresh process where none does in a
// short while; what comes out is the same. Each spare serves once; a thread starts the next. A tool
// that does not stop at the gate is always run afresh. Thread-safe.
//
// Example: ToolSpares spares({.argv = {nvdisasm, "-b", "SM90a", kToolInput}, ...}, {.opening = 2,
// .filler = ...}, 1); CG_TRY(ToolRun run, spares.run(ctx, code));
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "toolchain/tool_run.h"

namespace cutegen::toolchain {

struct Gate {
  int opening = 1;     // of the input, counted from 1, that waits
  std::string filler;  // what the openings before it read
};

class ToolSpares {
 public:
  // `call` without its input.
  ToolSpares(ToolCall call, Gate gate, size_t count);
  ~ToolSpares();
  ToolSpares(const ToolSpares&) = delete;
  ToolSpares& operator=(const ToolSpares&) = delete;

  [[nodiscard]] Result<ToolRun> run(const Context& ctx, std::string_view input);
  [[nodiscard]] size_t served() const { return served_; }  // runs that a spare did

 private:
  struct Spare {
    ToolProcess process;
    UniqueFd gate;  // our end
  };
  [[nodiscard]] Result<Spare> start() const;
  void keep_stocked();
  // A spare that waits at its gate, or nothing.
  [[nodiscard]] bool take(Spare& out);

  ToolCall call_;
  Gate gate_;
  size_t count_;
  std::string library_;  // of the gate; empty: not installed
  std::mutex lock_;
  std::condition_variable wake_;
  std::deque<Spare> spares_;
  int failures_ = 0;  // in a row: spares that never came to the gate
  std::atomic<size_t> served_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace cutegen::toolchain
