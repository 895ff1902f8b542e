// SPDX-License-Identifier: Apache-2.0
// SharedGuard: marks bytes of shared memory that ordinary accesses must not touch for now.
//
// Contract: for each word, it counts the copies that will write it, the copies that have yet to
// read it, and the live mbarriers. The caller passes the same range to add() and remove(), and
// keeps ranges inside shared memory. touches() is fast if nothing near the bytes is marked.
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
  // The marks of the bytes [from, to), as bits.
  uint8_t touches(uint64_t from, uint64_t to) const;
  void clear();

 private:
  static constexpr int kBlockShift = 7;  // blocks of 128 bytes, for a quick check
  void change(Mark mark, uint64_t from, uint64_t to, int by);

  size_t bytes_;
  std::array<std::vector<uint16_t>, 3> words_;  // by mark; empty before the first mark
  std::vector<uint32_t> blocks_;                // marks in each block
  int64_t marks_ = 0;
};

}  // namespace cutegen::ptx
