// SPDX-License-Identifier: Apache-2.0
// StoredBytes: counts the bytes of a buffer that a run has stored, each byte once.
//
// Contract: watch() starts the count. Several threads may call add() at once. Without watch(),
// add() does nothing. Copies of a StoredBytes share one count.
//
// Example: stored.watch(buffer_size); stored.add(offset, 4); stored.count();
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "ptx/state/shadow.h"

namespace cutegen::ptx {

class StoredBytes {
 public:
  void watch(uint64_t size);
  bool watched() const { return seen_ != nullptr; }
  void add(uint64_t from, uint64_t bytes) const;
  uint64_t count() const { return seen_ ? seen_->count.load() : 0; }

 private:
  struct Seen {
    Pages<uint32_t> bits;  // one per byte
    std::atomic<uint64_t> count{0};
  };
  std::shared_ptr<Seen> seen_;
};

}  // namespace cutegen::ptx
