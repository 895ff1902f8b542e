// SPDX-License-Identifier: Apache-2.0
// WarpScheduler: decides which warp of a CTA runs, and for how long. The scheduler also handles the
// case that no warp can run.
//
// Contract: warps run one after another, in the order that Job::order specifies. A warp runs until
// it waits, ends, or has executed quantum() instructions. A warp that polls memory yields early,
// and the instructions of its polling loop do not count as work. deadlock() and fail_spinning()
// report the fault of the kernel (`Finding`) that ends the CTA.
//
// Example: for (uint8_t i : scheduler.next_turns()) run(cta.warps[i], scheduler.quantum());
#pragma once

#include <string>
#include <vector>

#include "ptx/cta/barriers.h"
#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// The result of WarpScheduler::meet(). `here`: all lanes that the instruction needs have arrived.
// `parked`: the arrived lanes wait for lanes that have not arrived, and other lanes of the warp
// run.
enum class Meet { here, parked, failed };

class WarpScheduler {
 public:
  WarpScheduler(CtaState& cta, const Barriers& barriers);
  void begin();
  // Returns the warps in the order in which they run next.
  const std::vector<uint8_t>& next_turns();
  // Returns the number of instructions that a warp may execute before it must yield.
  uint64_t quantum();
  // Returns whether the warp yields to other warps after the instruction `in`.
  bool yields(const Warp& w, const Inst& in) {
    if (in.op == Op::fence) return mixed_ && in.sub != kNoFence && (random() & 1);
    if (w.spins >= spins_ && w.spins % spins_ == 0) return true;
    if (in.pulls && cta_.job.fair) return true;
    return mixed_ && (in.op == Op::atomic || in.ordered) && (random() & 1);
  }
  bool spins(const Warp& w) const { return w.spins >= spins_; }

  // Call meet() at an instruction that the lanes in `needed` must execute together, if the lanes in
  // `mask` have arrived.
  Meet meet(Warp& w, uint32_t needed, uint32_t mask, const char* kind);
  // Records an access that may poll a word that another thread writes. `changed` says whether the
  // access may have changed memory.
  void note_poll(Warp& w, const Inst& in, uint64_t address, bool changed);
  // Records that the warp has found the phase of an mbarrier incomplete and continues to run.
  void note_wait(Warp& w, uint64_t address);
  // Returns whether a try_wait returns false at once, as the ISA allows; with Order::in_order, no
  // try_wait does.
  bool ends_waits_early() {
    return cta_.job.order != Order::in_order && (!mixed_ || (random() & 1));
  }
  void sleep(Warp& w, const Inst& in, uint32_t mask);

  // Call time_out_waits() if no warp can run, to end the waits at mbarriers as the time limit of
  // try_wait does on a GPU. time_out_waits() returns false if no warp waits at an mbarrier, or if
  // the last time-outs changed nothing.
  bool time_out_waits();
  // Call deadlock() if no warp can run, to report what each warp waits for.
  void deadlock();
  // Call fail_spinning() if all `resident` CTAs poll memory, to report a deadlock.
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
  // How often mbarriers and warps had changed at the last time-out.
  uint64_t changes_ = 0;
  int time_outs_ = 0;  // time-outs since the last change of an mbarrier or a warp
};

}  // namespace cutegen::ptx
