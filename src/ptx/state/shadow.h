// SPDX-License-Identifier: Apache-2.0
// BufferShadow: shadow memory of a global buffer for the checks. A BufferShadow stores the last
// writer and the last reader of each granule (the unit of 1 to 4 bytes in checks/facts.h), and
// which words are defined.
//
// Contract: shadow memory is zero at first and takes host memory only for pages that the checks
// write. Host threads write shadow memory without locks. Therefore, the checks may miss one of two
// simultaneous accesses, but they never report an access that did not happen.
//
// Example: shadow.writers.grow(words); uint32_t last = shadow.writers[i];
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace cutegen::ptx {

template <class T>
class Pages {
 public:
  Pages() = default;
  Pages(Pages&& o) noexcept
      : at_(std::exchange(o.at_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  Pages& operator=(Pages&& o) noexcept {
    std::swap(at_, o.at_), std::swap(size_, o.size_);
    return *this;
  }
  ~Pages() { release(); }
  // Allocates at least `size` elements. If the array grows, it loses its old elements. Returns
  // false if the host is out of memory.
  bool grow(size_t size);
  void release();
  size_t size() const { return size_; }
  T* data() { return at_; }
  T& operator[](size_t i) { return at_[i]; }
  const T& operator[](size_t i) const { return at_[i]; }

 private:
  T* at_ = nullptr;
  size_t size_ = 0;
};

struct BufferShadow {
  Pages<uint32_t> writers, readers;  // race-check ids, by granule; see global_races.h
  Pages<uint8_t> defined;            // state of each 4-byte word; see undefined.h
};

extern template class Pages<uint32_t>;
extern template class Pages<uint8_t>;

}  // namespace cutegen::ptx
