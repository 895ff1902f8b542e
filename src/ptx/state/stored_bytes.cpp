// SPDX-License-Identifier: Apache-2.0
#include "ptx/state/stored_bytes.h"

#include <algorithm>
#include <bit>

namespace cutegen::ptx {
namespace {
constexpr auto kRelaxed = std::memory_order_relaxed;
}  // namespace

void StoredBytes::watch(uint64_t size) {
  if (seen_) return;
  auto seen = std::make_shared<Seen>();
  if (seen->bits.grow(size / 32 + 1)) seen_ = std::move(seen);
}

void StoredBytes::add(uint64_t from, uint64_t bytes) const {
  if (!seen_) return;
  while (bytes > 0) {
    const uint64_t here = std::min(bytes, 32 - from % 32);
    const uint32_t mask = uint32_t((uint64_t{1} << here) - 1) << from % 32;
    const uint32_t old = std::atomic_ref(seen_->bits[from / 32]).fetch_or(mask, kRelaxed);
    if (mask & ~old) seen_->count.fetch_add(uint64_t(std::popcount(mask & ~old)), kRelaxed);
    from += here, bytes -= here;
  }
}

}  // namespace cutegen::ptx
