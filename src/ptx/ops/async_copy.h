// SPDX-License-Identifier: Apache-2.0
// AsyncCopies: the cp.async copies of a warp that are in flight.
//
// Contract: a copy joins the group that its lanes commit next. take() returns the copies that a
// wait completes, in the order of issue; the caller then writes them to shared memory. Each lane
// counts its own groups, even if its warp has diverged. If a warp has kMostCopies, the caller
// completes the oldest, as the hardware would have done by then.
//
// Example: copies.commit(mask); for (auto& c : copies.take(mask, 0)) deliver(c);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cutegen::ptx {

inline constexpr int64_t kWaitAll = -1;  // take(): all copies, committed or not
inline constexpr size_t kMostCopies = 1024;

struct AsyncCopy {
  int32_t pc = 0;
  uint8_t vec = 1;  // words per lane
  uint32_t mask = 0, group = 0;
  // Number of the copy in its warp's order of issue.
  uint64_t number = 0;
  std::array<uint32_t, 32> at{};                    // shared addresses
  std::array<std::array<uint32_t, 32>, 4> words{};  // the words, in the layout of registers
};

class AsyncCopies {
 public:
  // Adds one entry for each group to which the lanes of `copy` will commit it.
  void issue(const AsyncCopy& copy);
  void commit(uint32_t mask);
  // Removes and returns the copies that complete when `mask` waits for all but `pending` groups.
  std::vector<AsyncCopy> take(uint32_t mask, int64_t pending);
  bool full() const { return copies_.size() >= kMostCopies; }
  AsyncCopy take_oldest();
  // Removes and returns the copies of `mask` that were issued before copy `number`.
  std::vector<AsyncCopy> take_before(uint32_t mask, uint64_t number);
  uint64_t next_number() const { return next_; }
  const std::deque<AsyncCopy>& all() const { return copies_; }
  void clear();

 private:
  // Removes and returns those lanes of copies for which f(copy, lane) is true.
  template <class F>
  std::vector<AsyncCopy> take_where(uint32_t mask, F f);

  std::deque<AsyncCopy> copies_;
  std::array<uint32_t, 32> committed_{};
  uint64_t next_ = 0;
};

// Lanes that arrive at an mbarrier once their earlier copies are complete.
struct AsyncArrival {
  uint64_t mbarrier = 0;
  int warp = 0;
  uint32_t mask = 0;
  uint64_t before = 0;  // number of the first copy for which it does not wait
  int32_t pc = 0;
};

// The copies of all warps of a CTA, and the words of shared memory that they will write.
class CopiesInFlight {
 public:
  CopiesInFlight(size_t warps, size_t shared_bytes) : of_(warps), shared_bytes_(shared_bytes) {}
  AsyncCopies& of(int warp) { return of_[size_t(warp)]; }
  bool any() const { return lanes_ > 0; }
  void issue(int warp, const AsyncCopy& copy);
  // Call it after `copy` has been taken from its warp, and before its words are written.
  void arrives(const AsyncCopy& copy);
  void clear();
  // Whether a copy will write one of the bytes [from, to).
  bool touches(uint64_t from, uint64_t to) const;
  // A copy that will write one of these bytes, or nullptr.
  const AsyncCopy* find(uint64_t from, uint64_t to) const;
  // Arrivals that have not happened yet, in the order of issue.
  std::deque<AsyncArrival>& arrivals() { return arrivals_; }

 private:
  std::vector<AsyncCopies> of_;  // by warp
  // Copies that will write each word of shared memory; empty before the first copy.
  std::vector<uint32_t> writes_;
  size_t shared_bytes_;
  uint64_t lanes_ = 0;  // of all copies
  std::deque<AsyncArrival> arrivals_;
};

}  // namespace cutegen::ptx
