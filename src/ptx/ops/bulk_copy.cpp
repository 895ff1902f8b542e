// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/bulk_copy.h"

#include <bit>

namespace cutegen::ptx {

void BulkCopies::commit(int warp, uint32_t lanes) {
  for (uint32_t m = lanes; m; m &= m - 1)
    ++committed_[size_t(warp) * 32 + size_t(std::countr_zero(m))];
}

const BulkCopy* BulkCopies::find(uint64_t from, uint64_t to) const {
  for (const BulkCopy& c : copies_) {
    bool touches = false;
    if (!c.has_read)
      c.each_part([&](uint64_t a, uint64_t b) { touches = touches || (a < to && from < b); });
    if (touches) return &c;
  }
  return nullptr;
}

}  // namespace cutegen::ptx
