// SPDX-License-Identifier: Apache-2.0
// WgmmaColumns: keeps the converted columns of B, which the four warps of a warpgroup share.
//
// Contract: find() compares the bytes, so a change of shared memory never matters. Each host thread
// has its own cache: it belongs to no CTA.
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
  // The place for the converted columns. known: whether it already holds these columns, converted
  // for this operation. descriptor: any number that tells where B lies.
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
  // Enough for eight stages of four products.
  static constexpr size_t kEntries = 32;
  std::array<Entry, kEntries> entries_;
  size_t next_ = 0;
};

}  // namespace cutegen::ptx
