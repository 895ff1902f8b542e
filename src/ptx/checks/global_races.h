// SPDX-License-Identifier: Apache-2.0
// Finds races on global memory, between CTAs and between the warps of a CTA.
//
// Contract: an epoch is an id for the executions of one instruction by one warp between two
// synchronisations. Each granule (checks/facts.h) of a writable buffer stores the epochs of its
// last write and read. Accesses of earlier launches never conflict. Two CTAs count as ordered if
// one acquires after the other has released, even if their addresses differ. The check may
// therefore miss a race, but it never reports a race in a correct program. Acquires are volatile
// loads, acquiring loads and atomics that return a value. Releases are fences at GPU scope,
// releasing atomics and releasing stores. A relaxed atomic or a volatile store alone does not order
// accesses of other CTAs, but it orders the warps of its own CTA.
//
// Example: if (uint32_t bad = races.touch(access, shadow, base)) blame(races.other());
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
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

// Records when each CTA released its writes. A segment is the time between two releases of a CTA.
class SyncTimes {
 public:
  uint64_t now() const { return time_.load(); }
  void release(int64_t cta);  // ends the CTA's segment, but does not release it to other CTAs
  void publish(int64_t cta);  // releases all ended segments of the CTA to other CTAs
  bool released(int64_t cta, uint32_t segment, uint64_t until) const;

 private:
  struct Shard {
    mutable std::mutex mutex;
    struct Segments {
      std::vector<uint64_t> times;  // by segment
      size_t published = 0;         // number of segments released to other CTAs
    };
    std::unordered_map<int64_t, Segments> times;
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
  void join() { ++stamp_; }
  // Orders the CTA's earlier writes before later accesses of its own warps.
  void release();
  // Does what release() does, and also releases the CTA's writes to other CTAs. Call publish() at a
  // fence at GPU scope or a releasing access.
  void publish();
  void acquire() { acquired_ = times_.now(); }
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
  Epoch other_;
};

}  // namespace cutegen::ptx
