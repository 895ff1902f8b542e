// SPDX-License-Identifier: Apache-2.0
// WarpScheduler: decides which warp of a CTA runs, for how long, and what happens when none can.
//
// Contract: warps take turns in the order of Job::order. A warp runs until it waits, ends, or has
// used its quantum. A warp that polls memory yields early, and its polling loop does not count as
// its work. deadlock() and fail_spinning() report the finding that ends the CTA.
//
// Example: for (uint8_t i : scheduler.next_turns()) run(cta.warps[i], scheduler.quantum());
#pragma once

#include <string>
#include <vector>

#include "ptx/cta/barriers.h"
#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// here: all lanes that an instruction needs have arrived. parked: the split waits for the missing
// lanes, and another split runs.
enum class Meet { here, parked, failed };

class WarpScheduler {
 public:
  WarpScheduler(CtaState& cta, const Barriers& barriers);
  void begin();
  // The warps, in the order in which they run next.
  const std::vector<uint8_t>& next_turns();
  // Instructions that a warp may execute in one turn.
  uint64_t quantum();
  // Whether a warp lets others run after this instruction.
  bool yields(const Warp& w, const Inst& in) {
    if (in.op == Op::fence) return mixed_ && in.sub != kNoFence && (random() & 1);
    if (w.spins >= spins_ && w.spins % spins_ == 0) return true;
    if (in.pulls && cta_.job.fair) return true;
    return mixed_ && (in.op == Op::atomic || in.ordered) && (random() & 1);
  }
  bool spins(const Warp& w) const { return w.spins >= spins_; }

  // Call it at an instruction that needs the lanes of `needed` together; the lanes of `mask` have
  // arrived.
  Meet meet(Warp& w, uint32_t needed, uint32_t mask, const char* kind);
  // Notes an access that may poll a word that another thread writes. changed: the access wrote
  // memory.
  void note_poll(Warp& w, const Inst& in, uint64_t address, bool changed);
  // Notes that the warp has found an mbarrier's phase incomplete and runs on.
  void note_wait(Warp& w, uint64_t address);
  // Whether a try_wait returns false at once, as the ISA allows. Never with Order::in_order.
  bool ends_waits_early() {
    return cta_.job.order != Order::in_order && (!mixed_ || (random() & 1));
  }
  void sleep(Warp& w, const Inst& in, uint32_t mask);

  // Call it if no warp can run: ends the waits at mbarriers, as the time limit of try_wait would.
  // False: there is no such wait, or the last time-outs changed nothing.
  bool time_out_waits();
  // Call it if no warp can run: reports what each warp waits for.
  void deadlock();
  // Call it if all `resident` CTAs poll memory: reports a deadlock.
  void fail_spinning(int64_t resident);

 private:
  uint64_t random();
  void count_poll(Warp& w, bool again);
  std::string describe(const Warp& w) const;

  CtaState& cta_;
  const Barriers& barriers_;
  const bool mixed_;
  const uint32_t spins_;
  std::vector<uint8_t> turns_;
  uint64_t random_ = 0;
  uint64_t changes_ = 0;  // number of changes of mbarriers and warps, at the last time-out
  int time_outs_ = 0;     // since then
};

}  // namespace cutegen::ptx
