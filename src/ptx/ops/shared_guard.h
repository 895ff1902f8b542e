// SPDX-License-Identifier: Apache-2.0
// SharedGuard: marks bytes of shared memory that copies in flight or mbarriers use, and that
// ordinary accesses therefore must not use.
//
// Contract: for each word, SharedGuard counts the copies that will write the word, the copies that
// will read it, and the initialised mbarriers that contain it. For each add(), the caller must call
// remove() with the same range, which must lie inside shared memory. touches() is fast if
// SharedGuard marks no bytes nearby.
//
// Example: if (guard.any() && guard.touches(from, to) & SharedGuard::bit(Mark::written)) ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cutegen::ptx {

class SharedGuard {
 public:
  enum class Mark : uint8_t { written, read, mbarrier };
  static constexpr uint8_t bit(Mark m) { return uint8_t(1u << unsigned(m)); }

  explicit SharedGuard(size_t shared_bytes) : bytes_(shared_bytes) {}
  bool any() const { return marks_ > 0; }
  void add(Mark mark, uint64_t from, uint64_t to) { change(mark, from, to, 1); }
  void remove(Mark mark, uint64_t from, uint64_t to) { change(mark, from, to, -1); }
  // Returns the marks of the bytes [from, to), combined as bits (see bit()).
  uint8_t touches(uint64_t from, uint64_t to) const;
  void clear();

 private:
  static constexpr int kBlockShift = 7;  // blocks of 128 bytes, for a quick check
  void change(Mark mark, uint64_t from, uint64_t to, int by);

  size_t bytes_;
  std::array<std::vector<uint16_t>, 3> words_;  // by mark; empty before the first mark
  std::vector<uint32_t> blocks_;                // number of marks in each block
  int64_t marks_ = 0;
};

}  // namespace cutegen::ptx
