// SPDX-License-Identifier: Apache-2.0
// Barriers: executes the 16 named barriers of a CTA (bar.sync, bar.arrive, bar.red).
//
// Contract: if a warp has to wait, arrive() sets its state to Warp::State::waiting, and sets its
// `barrier` and `waits_at`. When the last warp has arrived at a barrier, all warps that wait at the
// barrier can run again. A function that returns false has reported a `Finding` (a fault of the
// kernel).
//
// Example: if (!barriers.arrive(w, in, mask)) return false;
#pragma once

#include <string>

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

class Barriers {
 public:
  explicit Barriers(CtaState& cta) : cta_(cta) {}
  void begin();
  // Call arrive() when all lanes of the warp are at the barrier instruction `in`. arrive() moves
  // the warp's pc behind `in`, even if the warp has to wait.
  bool arrive(Warp& w, const Inst& in, uint32_t mask);
  // Call recheck() when a warp has ended, because a barrier may now be complete.
  bool recheck();
  // Returns text such as "at barrier 0, line 12 (bar.sync 0), which 64 of all 128 threads have
  // reached".
  std::string describe(const Warp& waiting) const;

 private:
  struct Barrier {
    int waiting = 0;        // warps
    uint32_t arrived = 0;   // threads
    uint32_t expected = 0;  // 0: all threads that have not exited
    // For bar.red: the number of true predicates, and the number of threads that have arrived.
    uint32_t count = 0, votes = 0;
  };
  bool valid(const Warp& w, uint32_t id, uint32_t expected, int lane);
  bool release_if_complete(int id);
  bool all_reach(const Barrier& b, int id);
  void release(Warp& w, const Barrier& b);
  void meet_sleepers(uint32_t waiting);

  CtaState& cta_;
  Barrier barriers_[16];
};

}  // namespace cutegen::ptx
