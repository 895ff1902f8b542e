// SPDX-License-Identifier: Apache-2.0
// WgmmaColumns: caches the columns of B of a wgmma.mma_async, converted for the host's arithmetic.
// All four warps of a warpgroup use the same columns of B.
//
// Contract: Key::version identifies the state of a CTA's shared memory. current() finds the columns
// of this version. If current() finds no columns, find() compares the unconverted bytes with the
// bytes of the last version. Each host thread has one cache for all its CTAs.
//
// Example: product.columns = cache.current(key);
//          if (!product.columns) product.columns = cache.find(key, b, product.has_columns);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ptx/ops/wgmma.h"

namespace cutegen::ptx {

class WgmmaColumns {
 public:
  struct Key {
    WgmmaFn run = nullptr;  // the operation for which the columns are converted
    uint64_t descriptor = 0;
    int n = 0;
    bool mn_major = false;
    uint64_t version = 0;
  };
  static WgmmaColumns& of_thread();
  // Returns the converted columns, or nullptr.
  std::byte* current(const Key& key);
  // Returns a buffer for the converted columns. Sets `known` to true if the buffer already has the
  // columns `b`.
  std::byte* find(const Key& key, const std::byte* b, bool& known);

 private:
  struct alignas(64) Place {
    std::byte converted[kWgmmaColumnsBytes];
    std::byte raw[kWgmmaMostColumns * kWgmmaSliceBytes];
  };
  struct Entry {
    Key key;
    std::unique_ptr<Place> place;
  };
  Entry* entry_of(const Key& key);
  // Enough for a pipeline of eight stages with four wgmma instructions each.
  static constexpr size_t kEntries = 32;
  std::array<Entry, kEntries> entries_;
  size_t next_ = 0;
};

}  // namespace cutegen::ptx
