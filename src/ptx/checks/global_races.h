// SPDX-License-Identifier: Apache-2.0
// Finds races on global memory, between CTAs and between the warps of a CTA.
//
// Contract: an epoch is a number for the executions of one instruction by one warp between two
// synchronisations. Each granule of a writable buffer stores the epochs of its last write and read.
// Accesses of earlier launches never conflict. The check treats two CTAs as ordered if one acquires
// after the other has released, at any address. A volatile or acquiring load and an atomic that
// returns a value acquire; a fence at GPU scope and a releasing atomic or store release. So the
// check may miss a race, but it never reports a correct protocol. A relaxed atomic or a volatile
// store alone releases nothing to another CTA, but orders the warps of its own CTA.
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
  uint64_t low = 0;  // the lowest address of its first execution
  // Distance of the lanes' addresses; 0: not contiguous, or executed more than once.
  uint32_t stride = 0;
  int32_t pc = 0;
  uint32_t label = 0, segment = 0;
  int16_t warp = 0;
  Touch touch = Touch::read;
};

// The epochs of a launch; each host thread takes blocks of them.
class Epochs {
 public:
  static constexpr uint32_t kBlock = 1024, kMostBlocks = 4096;
  explicit Epochs(uint32_t first) : first_(first) {}
  ~Epochs();
  // Reserves kBlock epochs and returns the id of the first one, or 0 if none are left.
  uint32_t take();
  Epoch& at(uint32_t id) const;
  uint32_t first() const { return first_; }
  uint32_t end() const { return first_ + kBlock * used_.load(); }

 private:
  uint32_t first_;
  std::atomic<uint32_t> used_{0};
  std::array<std::atomic<Epoch*>, kMostBlocks> blocks_{};
};

// Records when each CTA released its writes.
class SyncTimes {
 public:
  uint64_t now() const { return time_.load(); }
  void release(int64_t cta);  // ends a segment; other CTAs do not see it as released yet
  void publish(int64_t cta);  // releases all ended segments to other CTAs
  bool released(int64_t cta, uint32_t segment, uint64_t until) const;

 private:
  struct Shard {
    mutable std::mutex mutex;
    struct Segments {
      std::vector<uint64_t> times;  // by segment
      size_t published = 0;         // number of segments that other CTAs see as released
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
  // Ends all epochs. Call it at a barrier or anything else that orders warps.
  void join() { ++stamp_; }
  // Orders the CTA's earlier writes before later accesses of its own warps.
  void release();
  // Also releases these writes to other CTAs: call it at a fence at GPU scope or a releasing
  // access.
  void publish();
  void acquire() { acquired_ = times_.now(); }
  // Records an access and returns the lanes that conflict with an earlier, unordered one.
  uint32_t touch(const GlobalAccess& a, BufferShadow& shadow, uint64_t base);
  // Whether a bulk copy reads what ordinary stores of this CTA wrote, with no proxy fence in
  // between.
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
  bool plain_ = false;                         // a plain access since the last release
  std::vector<std::array<Cached, 16>> cache_;  // by warp
  Epoch other_;
};

}  // namespace cutegen::ptx
