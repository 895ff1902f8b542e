// SPDX-License-Identifier: Apache-2.0
// Warp: the state of 32 lanes, and how they diverge and reconverge.
//
// Contract: when lanes diverge, they form several splits. A `Split` is a pc and the mask of the
// lanes at this pc. The split with the lowest pc runs first, and splits at the same pc merge.
// `current` is the split that runs, and the splits in `others` wait.
//
// Example: w.split_off(mask); w.current.pc = target; w.reschedule();
#pragma once

#include <cstddef>
#include <cstdint>

namespace cutegen::ptx {

// Values of Warp::barrier if the warp waits for something other than a barrier of its CTA.
inline constexpr int kAtWgmmaWait = -3, kAtClusterBarrier = -4, kAtRegisters = -5;

struct Split {
  int32_t pc = 0;
  uint32_t mask = 0;
  bool blocked = false;  // whether the split waits for other lanes of the warp
};

struct Warp {
  enum class State : uint8_t { running, waiting, done } state = State::done;
  std::byte* registers = nullptr;
  uint32_t alive = 0;
  uint32_t turns = 0;
  int index = 0, count = 0;   // `count`: number of splits in `others`
  int barrier = -1;           // barrier at which a `waiting` warp waits
  int32_t waits_at = -1;      // pc of the instruction at which the warp waits
  uint64_t executed = 0;      // warp instructions in this CTA
  uint64_t spin_address = 0;  // the address that the warp polls
  // successive polls of spin_address, with no other load and no store between these polls
  uint32_t spins = 0;
  uint64_t polled_at = 0;  // value of `executed` at the last poll
  uint64_t polled = 0;     // number of executed instructions in polling loops
  // Nanoseconds that the warp slept. Warps that meet at a barrier all take the longest sleep of
  // these warps.
  double slept_ns = 0;
  Split current, others[32];

  void begin(uint32_t lanes);
  // Merges the splits that are at the pc of the current split into the current split.
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
  // Moves the current split to `others` and selects the next split to run. Returns false if all
  // splits are blocked.
  bool reschedule();
  // Moves the lanes of the current split that are not in `mask` to a new split at the next pc.
  void split_off(uint32_t mask);
  // Switches to another split that can run. The caller must know that another split can run.
  void pass_turn();
  // Ends the lanes in `mask`. The warp is `done` when it has no live lanes.
  void leave(uint32_t mask);
};

}  // namespace cutegen::ptx
