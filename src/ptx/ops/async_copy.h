// SPDX-License-Identifier: Apache-2.0
// Copies in flight from global to shared memory (cp.async).
//
// Contract: a copy joins the group that its lanes commit next. take() returns the copies that a
// wait completes, in the order of issue; their bytes reach shared memory only then. Each lane
// counts its own groups, so a diverged warp keeps its copies apart. The caller completes the oldest
// copy when a warp has kMostCopies: the hardware would have done so by then.
//
// Example: copies.commit(mask); for (auto& c : copies.take(mask, 0)) deliver(c);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cutegen::ptx {

inline constexpr int64_t kWaitAll = -1;  // committed or not
inline constexpr size_t kMostCopies = 1024;

struct AsyncCopy {
  int32_t pc = 0;
  uint8_t vec = 1;  // words of a lane
  uint32_t mask = 0, group = 0;
  std::array<uint32_t, 32> at{};                    // shared addresses
  std::array<std::array<uint32_t, 32>, 4> words{};  // as registers hold them
};

class AsyncCopies {
 public:
  // Adds one entry for each group that lanes of `copy` will commit.
  void issue(const AsyncCopy& copy);
  void commit(uint32_t mask);
  // Removes and returns the copies that complete when `mask` waits for all but `pending` groups.
  std::vector<AsyncCopy> take(uint32_t mask, int64_t pending);
  bool full() const { return copies_.size() >= kMostCopies; }
  AsyncCopy take_oldest();
  const std::deque<AsyncCopy>& all() const { return copies_; }
  void clear();

 private:
  std::deque<AsyncCopy> copies_;
  std::array<uint32_t, 32> committed_{};
};

// The copies of all warps of a CTA, and the words of shared memory that they will write.
class CopiesInFlight {
 public:
  CopiesInFlight(size_t warps, size_t shared_bytes) : of_(warps), shared_bytes_(shared_bytes) {}
  AsyncCopies& of(int warp) { return of_[size_t(warp)]; }
  bool any() const { return lanes_ > 0; }
  void issue(int warp, const AsyncCopy& copy);
  // The caller has taken `copy` from its warp and is about to write its words.
  void arrives(const AsyncCopy& copy);
  void clear();
  // Whether a copy will write one of the bytes [from, to).
  bool touches(uint64_t from, uint64_t to) const;
  // A copy that will write one of these bytes, or nullptr.
  const AsyncCopy* find(uint64_t from, uint64_t to) const;

 private:
  std::vector<AsyncCopies> of_;   // by warp
  std::vector<uint32_t> writes_;  // by word of shared memory; empty before the first copy
  size_t shared_bytes_;
  uint64_t lanes_ = 0;  // of all copies
};

}  // namespace cutegen::ptx
