// SPDX-License-Identifier: Apache-2.0
// WgmmaColumns: caches the columns of B of a wgmma.mma_async, converted for the host's arithmetic.
// All four warps of a warpgroup use the same columns of B.
//
// Contract: find() compares the unconverted bytes, so it never returns outdated columns if shared
// memory has changed. Each host thread has one cache for all its CTAs.
//
// Example: product.columns = cache.find(op.run, descriptor, b, n, product.has_columns);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ptx/ops/wgmma.h"

namespace cutegen::ptx {

class WgmmaColumns {
 public:
  static WgmmaColumns& of_thread();
  // Returns a buffer for the converted columns. Sets `known` to true if the buffer already has the
  // columns of B, converted for the operation `run`. `descriptor` is any number that identifies the
  // location of B.
  std::byte* find(WgmmaFn run, uint64_t descriptor, const std::byte* b, int n, bool& known);

 private:
  struct alignas(64) Place {
    std::byte converted[kWgmmaColumnsBytes];
    std::byte raw[kWgmmaMostColumns * kWgmmaSliceBytes];
  };
  struct Entry {
    WgmmaFn run = nullptr;
    uint64_t descriptor = 0;
    int n = 0;
    std::unique_ptr<Place> place;
  };
  // Enough for a pipeline of eight stages with four wgmma instructions each.
  static constexpr size_t kEntries = 32;
  std::array<Entry, kEntries> entries_;
  size_t next_ = 0;
};

}  // namespace cutegen::ptx
