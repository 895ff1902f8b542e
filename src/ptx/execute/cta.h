// SPDX-License-Identifier: Apache-2.0
// Cta: runs one CTA of a launch at a time. A host thread may own several Cta objects and run them
// alternately.
//
// Contract: turn() runs each runnable warp for a limited number of instructions. If turn() returns
// `ended`, begin() may start another CTA. After turn() has returned `failed`, do not use the object
// again.
//
// Example: Cta cta(job); cta.begin(index, counting); while (cta.turn() == Cta::Turn::going) {}
#pragma once

#include "ptx/cta/barriers.h"
#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_scheduler.h"
#include "ptx/execute/interpreter.h"

namespace cutegen::ptx {

class Cta {
 public:
  // `spinning` is like `going`, but every warp that can run polls memory that another thread
  // writes.
  enum class Turn { going, spinning, ended, failed };
  explicit Cta(Job& job);
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;
  // The CTAs that one host thread runs may share one `counting` object. `cluster` is nullptr if
  // neither the launch nor the program uses clusters.
  void begin(int64_t linear, Counting& counting, std::shared_ptr<ClusterState> cluster = nullptr);
  Turn turn();
  // Ends the launch with a fault of the kernel (`Finding`): all `resident` CTAs poll memory.
  void fail_spinning(int64_t resident) { scheduler_.fail_spinning(resident); }
  // Returns whether some warp can run, so that not all warps wait for other CTAs of the cluster.
  bool polls() const;
  const CtaState& state() const { return state_; }

 private:
  // Returns false if the launch fails.
  bool run_warps(bool& any, bool& all_spin);
  bool run_warp(Warp& w, bool& all_spin);
  bool within_limits();
  // Ends the waits at mbarriers although their phases are not complete, and returns whether some
  // warp can run after that.
  bool end_waits();
  Turn finish();
  void leave_cluster();

  CtaState state_;
  Barriers barriers_;
  WarpScheduler scheduler_;
  Interpreter interpreter_;
};

}  // namespace cutegen::ptx
