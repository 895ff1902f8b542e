// SPDX-License-Identifier: Apache-2.0
// Finds races on global memory, between CTAs and between the warps of a CTA.
//
// Contract: an epoch is an id for the executions of one instruction by one warp between two
// synchronisations. Each granule (a unit of 1 to 4 bytes, checks/facts.h) of a writable buffer
// stores the epochs of its last write and read. Accesses of earlier launches never conflict. The
// race check may miss a race, but it never reports a race in a correct program.
//
// A warp hands accesses over to other CTAs (orders the accesses before theirs) if the warp signals
// after a fence of GPU scope. A signal is an atomic, a volatile or ordered store, or an ordinary
// store by one lane. A releasing access is both fence and signal. A signal covers the accesses of
// other warps only if, according to the clocks, these accesses happened before the fence, and the
// fence happened before the signal. The check treats an access as ordered if the CTA of the later
// access acquires after the signal, even if signal and acquire use different addresses. Volatile
// loads, acquiring loads and atomics that return a value are acquires. A signal without a fence
// orders only the warps of its own CTA.
//
// Example: if (uint32_t bad = races.touch(access, shadow, base)) blame(races.other());
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "ptx/checks/clocks.h"
#include "ptx/checks/facts.h"
#include "ptx/state/shadow.h"

namespace cutegen::ptx {

struct Epoch {
  int64_t cta = 0;
  uint64_t low = 0;  // lowest address of the first execution
  // Distance between the addresses of adjacent lanes. 0: the distances differ, or the warp executed
  // the instruction more than once.
  uint32_t stride = 0;
  int32_t pc = 0;
  uint32_t label = 0, segment = 0;
  int16_t warp = 0;
  Touch touch = Touch::read;
};

// The epochs of a launch, which the host threads reserve in blocks.
class Epochs {
 public:
  static constexpr uint32_t kBlock = 1024, kMostBlocks = 4096;
  explicit Epochs(uint32_t first) : first_(first) {}
  ~Epochs();
  // Reserves kBlock epochs and returns the id of the first epoch, or 0 if no epochs are left.
  uint32_t take();
  Epoch& at(uint32_t id) const;
  uint32_t first() const { return first_; }
  uint32_t end() const { return first_ + kBlock * used_.load(); }

 private:
  uint32_t first_;
  std::atomic<uint32_t> used_{0};
  std::array<std::atomic<Epoch*>, kMostBlocks> blocks_{};
};

// Records when each CTA handed its accesses over to other CTAs.
class SyncTimes {
 public:
  uint64_t now() const { return time_.load(); }
  // `labels` has the last label of each warp that the CTA now hands over.
  void publish(int64_t cta, std::span<const uint32_t> labels);
  // A label is a number for the accesses of a warp between two synchronisations (clocks.h). Returns
  // whether the CTA had handed over the accesses of `warp` with the label `label` by the time
  // `until`.
  bool published(int64_t cta, size_t warp, uint32_t label, uint64_t until) const;

 private:
  struct Published {
    std::vector<uint64_t> times;
    std::vector<uint32_t> labels;  // for each time, the label of each warp
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<int64_t, Published> ctas;
  };
  std::atomic<uint64_t> time_{0};
  std::array<Shard, 16> shards_;
};

struct GlobalAccess {
  Touch touch;
  int warp;
  int32_t pc;
  uint32_t mask;
  const AddressSummary& summary;
  const uint64_t* at;
  uint32_t bytes;
};

class GlobalRaces {
 public:
  GlobalRaces(const HazardFacts& facts, const Clocks& clocks, Epochs& epochs, SyncTimes& times,
              int warps);
  void begin(int64_t cta);
  // Ends all epochs. Call join() at a barrier and at every other synchronisation between warps.
  void join() { ++stamp_, ++changes_; }
  // Orders the CTA's earlier writes before later accesses of its own warps.
  void release();
  // Call fence() after a fence of GPU scope, when the clocks have recorded it.
  void fence();
  // Hands over to other CTAs the accesses that happened before a fence of GPU scope, if the fence
  // happened before this signal of `warp`.
  void signal(int warp);
  void acquire();
  // Records an access and returns the lanes that conflict with an earlier, unordered access.
  uint32_t touch(const GlobalAccess& a, BufferShadow& shadow, uint64_t base);
  // Returns whether a bulk copy reads bytes that ordinary stores of this CTA have written, without
  // a proxy fence between the stores and the copy.
  bool unfenced(int warp, const Program& program, const BufferShadow& shadow, uint64_t from,
                uint64_t to);
  const Epoch& other() const { return other_; }

 private:
  struct Cached {
    uint64_t stamp = 0;
    int32_t pc = -1;
    uint32_t id = 0;
  };
  uint32_t epoch_of(const GlobalAccess& a);
  bool conflict(const GlobalAccess& a, uint32_t id);
  bool granule(const GlobalAccess& a, BufferShadow& shadow, size_t g, uint32_t mine);

  const Clocks& clocks_;
  Epochs& epochs_;
  SyncTimes& times_;
  int shift_;
  int64_t cta_ = 0;
  uint64_t stamp_ = 1, acquired_ = 0;
  uint32_t segment_ = 0, next_ = 0, left_ = 0;
  bool plain_ = false;  // whether an ordinary access followed the last release
  std::vector<std::array<Cached, 16>> cache_;  // by warp
  // Each of the next four vectors has one entry per warp:
  // - labels_: a buffer for signal()
  // - released_: the last label that signals have released to other warps of the CTA
  // - acquired_labels_: the last label that some warp has acquired
  // - fenced_labels_: the last acquired label that a fence followed
  std::vector<uint32_t> labels_, released_, acquired_labels_, fenced_labels_;
  uint64_t changes_ = 0;             // calls of begin(), join() and fence() so far
  std::vector<uint64_t> signalled_;  // by warp: changes_ at its last signal
  Epoch other_;
};

}  // namespace cutegen::ptx
