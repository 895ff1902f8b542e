// SPDX-License-Identifier: Apache-2.0
// AsyncCopies: the cp.async copies of a warp that are in flight.
//
// Contract: when lanes commit, all their copies since the last commit form a group. take() returns
// the copies that a wait completes, in the order of issue; the caller then writes their bytes to
// shared memory. Each lane counts its own groups of copies, because a warp may diverge. If a warp
// has kMostCopies copies in flight, the caller completes the oldest copy.
//
// Example: copies.commit(mask); for (auto& c : copies.take(mask, 0)) deliver(c);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cutegen::ptx {

inline constexpr int64_t kWaitAll = -1;  // for take(): wait for all copies, committed or not
inline constexpr size_t kMostCopies = 1024;

struct AsyncCopy {
  int32_t pc = 0;
  uint8_t vec = 1;  // words per lane
  uint32_t mask = 0, group = 0;
  // How many copies the warp had issued before this copy.
  uint64_t number = 0;
  std::array<uint32_t, 32> at{};                    // shared addresses
  std::array<std::array<uint32_t, 32>, 4> words{};  // the copied words, in the layout of registers
};

class AsyncCopies {
 public:
  // Adds a copy. If the copy's lanes have committed different numbers of groups, adds one AsyncCopy
  // for each number, with the lanes that have committed so many groups in its `mask`.
  void issue(const AsyncCopy& copy);
  void commit(uint32_t mask);
  // Removes and returns the copies that complete when the lanes in `mask` wait for all but the
  // latest `pending` groups.
  std::vector<AsyncCopy> take(uint32_t mask, int64_t pending);
  bool full() const { return copies_.size() >= kMostCopies; }
  AsyncCopy take_oldest();
  // Removes and returns the copies of the lanes in `mask` that were issued before copy `number`.
  std::vector<AsyncCopy> take_before(uint32_t mask, uint64_t number);
  uint64_t next_number() const { return next_; }
  const std::deque<AsyncCopy>& all() const { return copies_; }
  void clear();

 private:
  // Removes and returns the lanes of the copies for which f(copy, lane) is true.
  template <class F>
  std::vector<AsyncCopy> take_where(uint32_t mask, F f);

  std::deque<AsyncCopy> copies_;
  std::array<uint32_t, 32> committed_{};
  uint64_t next_ = 0;
};

// An arrival at an mbarrier (cp.async.mbarrier.arrive) that happens when all copies that its lanes
// issued earlier are complete.
struct AsyncArrival {
  uint64_t mbarrier = 0;
  int warp = 0;
  uint32_t mask = 0;
  uint64_t before = 0;  // the arrival waits for copies with smaller AsyncCopy::number
  int32_t pc = 0;
};

// The cp.async copies in flight of all warps of a CTA, and the words of shared memory that these
// copies will write.
class CopiesInFlight {
 public:
  CopiesInFlight(size_t warps, size_t shared_bytes) : of_(warps), shared_bytes_(shared_bytes) {}
  AsyncCopies& of(int warp) { return of_[size_t(warp)]; }
  bool any() const { return lanes_ > 0; }
  void issue(int warp, const AsyncCopy& copy);
  // Call arrives() after take() has returned `copy`, before you write the copy's words to shared
  // memory.
  void arrives(const AsyncCopy& copy);
  void clear();
  bool touches(uint64_t from, uint64_t to) const;
  // Returns a copy that will write one of the bytes [from, to), or nullptr.
  const AsyncCopy* find(uint64_t from, uint64_t to) const;
  // Returns the mbarrier arrivals that have not happened yet, in the order of issue.
  std::deque<AsyncArrival>& arrivals() { return arrivals_; }

 private:
  std::vector<AsyncCopies> of_;  // by warp
  // For each word of shared memory, the number of copies that will write it; empty before the first
  // copy.
  std::vector<uint32_t> writes_;
  size_t shared_bytes_;
  uint64_t lanes_ = 0;  // of all copies
  std::deque<AsyncArrival> arrivals_;
};

}  // namespace cutegen::ptx
