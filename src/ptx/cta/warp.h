// SPDX-License-Identifier: Apache-2.0
// Warp: the state of 32 lanes, and how they diverge and reconverge.
//
// Contract: when lanes diverge, the warp consists of splits, each a {pc, mask}. The split with the
// lowest pc runs first, and splits at the same pc merge. `current` runs; `others` wait.
//
// Example: w.split_off(mask); w.current.pc = target; w.reschedule();
#pragma once

#include <cstddef>
#include <cstdint>

namespace cutegen::ptx {

// Values of Warp::barrier for a warp that waits for something other than a barrier of its CTA.
inline constexpr int kAtWgmmaWait = -3, kAtClusterBarrier = -4, kAtRegisters = -5;

struct Split {
  int32_t pc = 0;
  uint32_t mask = 0;
  bool blocked = false;  // waits for other lanes of its warp
};

struct Warp {
  enum class State : uint8_t { running, waiting, done } state = State::done;
  std::byte* registers = nullptr;
  uint32_t alive = 0;
  uint32_t turns = 0;
  int index = 0, count = 0;   // count: splits besides the current one
  int barrier = -1;           // if the state is `waiting`: the barrier at which the warp waits,
  int32_t waits_at = -1;      // and the instruction
  uint64_t executed = 0;      // in this CTA
  uint64_t spin_address = 0;  // the address that it polls
  uint32_t spins = 0;         // polls of it in a row, with no other load and no store in between
  uint64_t polled_at = 0;     // `executed` at the last poll
  uint64_t polled = 0;        // instructions spent in polling loops
  // How long the warp slept, or how long a warp slept for which it waited at a barrier, if longer.
  double slept_ns = 0;
  Split current, others[32];

  void begin(uint32_t lanes);
  // Merges the splits that wait at the current split's pc into it.
  void merge() {
    for (int i = 0; i < count;) {
      if (others[i].pc == current.pc) {
        current.mask |= others[i].mask;
        others[i] = others[--count];
      } else {
        ++i;
      }
    }
  }
  void add(const Split& split) { others[count++] = split; }
  // Puts the current split back and selects the next one to run. False: all are blocked.
  bool reschedule();
  // Lanes of the current split outside `mask` skip the instruction.
  void split_off(uint32_t mask);
  // Switches to another split that can run. Such a split must exist.
  void pass_turn();
  // Ends the lanes of `mask`. The warp is done when no lane is alive.
  void leave(uint32_t mask);
};

}  // namespace cutegen::ptx
