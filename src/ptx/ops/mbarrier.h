// SPDX-License-Identifier: Apache-2.0
// Mbarriers: the mbarrier objects in the shared memory of one CTA.
//
// Contract: see "Parallel Synchronization and Communication Instructions: mbarrier" in the PTX ISA.
// The simulator stores the state of an mbarrier in an `Mbarrier`, not in the bytes of shared
// memory. A phase completes when no arrival and no byte is outstanding. The parity of phase n is n
// modulo 2. expect(), complete(), arrive() and increment() return nullptr; for an operation that
// the ISA leaves undefined, they return the reason and change nothing. ptx/checks/clocks.h defines
// how mbarriers order memory accesses.
//
// Example: if (const char* wrong = b.arrive(1)) report(wrong); if (b.settle()) wake(address);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace cutegen::ptx {

inline constexpr uint32_t kMostArrivals = (1u << 20) - 1;
inline constexpr int64_t kMostTransactionBytes = (1 << 20) - 1;
inline constexpr uint32_t kMbarrierBytes = 8;

// Inst::sub of Op::mbarrier.
enum class MbarrierOp : uint8_t {
  init,
  inval,
  arrive,
  arrive_drop,
  expect_tx,
  complete_tx,
  test_wait,
  try_wait,
  pending_count,
  after_copies  // cp.async.mbarrier.arrive
};

// Inst::target of Op::mbarrier.
inline constexpr int32_t kMbarrierParity = 1,  // the wait takes a parity, not a state
    kMbarrierRelaxed = 2,                      // .relaxed: does not order other accesses
    kMbarrierExpects = 4,                      // arrive.expect_tx
    kMbarrierNoComplete = 8,                   // .noComplete: must not complete the phase
    kMbarrierCounted = 16;                     // .noinc: the phase already expects this arrival

struct Mbarrier {
  // How many arrivals each phase needs, and how many the current phase still lacks.
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0;  // the tx-count: expected minus completed bytes
  uint64_t phase = 0;
  int32_t pc = 0;       // pc of its mbarrier.init
  int maker = -1;       // the warp that initialised it
  uint32_t label = 0;   // of that warp, at the time (ptx/checks/clocks.h)
  bool fenced = false;  // whether a fence made it visible to bulk copies

  const char* expect(int64_t n);
  const char* complete(int64_t n);
  const char* arrive(uint32_t count, bool drop, bool must_stay);
  // Increases the number of arrivals that the current phase expects.
  const char* increment(uint32_t count);
  // Begins the next phase and returns true if no arrival and no byte is outstanding.
  bool settle();
  // Returns the mbarrier.arrive state: the phase, and the number of missing arrivals.
  uint64_t state() const { return phase << 20 | pending; }
  static uint64_t phase_of(uint64_t state) { return state >> 20; }
  static uint32_t pending_of(uint64_t state) { return uint32_t(state & kMostArrivals); }
};

class Mbarriers {
 public:
  Mbarrier* find(uint64_t at) {
    auto it = live_.find(at);
    return it == live_.end() ? nullptr : &it->second;
  }
  const Mbarrier* find(uint64_t at) const { return const_cast<Mbarriers*>(this)->find(at); }
  Mbarrier& add(uint64_t at, uint32_t expected, int32_t pc, int warp) {
    return live_[at] = {.expected = expected, .pending = expected, .pc = pc, .maker = warp};
  }
  void erase(uint64_t at) { live_.erase(at); }
  // Makes the mbarriers that a warp has initialised visible to the async proxy.
  void fence(int warp);
  bool any() const { return !live_.empty(); }
  // Returns an initialised mbarrier that overlaps the bytes [from, to), or nullptr.
  const Mbarrier* in(uint64_t from, uint64_t to) const;
  void clear() { live_.clear(), changes = 0; }

  // How often any mbarrier has changed. While this number stays the same, no wait can end.
  uint64_t changes = 0;

 private:
  std::map<uint64_t, Mbarrier> live_;  // by address
};

}  // namespace cutegen::ptx
