// SPDX-License-Identifier: Apache-2.0
// BufferShadow: what the checks record about a global buffer: the last writer and reader of each
// granule (checks/facts.h), and which words are defined.
//
// Contract: pages begin as zeros, and take memory only once they are touched. Host threads write
// them without locks, so the checks may miss one of two simultaneous accesses, but never invent
// one.
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
  // Makes room for at least `size` elements. Growing discards the old elements. False: out of
  // memory.
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
  Pages<uint32_t> writers, readers;  // epochs, by granule; see global_races.h
  Pages<uint8_t> defined;            // state of each word of four bytes; see undefined.h
};

extern template class Pages<uint32_t>;
extern template class Pages<uint8_t>;

}  // namespace cutegen::ptx
