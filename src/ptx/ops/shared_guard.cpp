// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/shared_guard.h"

#include <algorithm>

namespace cutegen::ptx {

void SharedGuard::change(Mark mark, uint64_t from, uint64_t to, int by) {
  if (from >= to) return;
  if (words_.empty()) {
    words_.resize(bytes_ / 4 + 1);
    blocks_.resize((bytes_ >> kBlockShift) + 1);
  }
  for (uint64_t word = from / 4; word <= (to - 1) / 4; ++word) {
    words_[word][size_t(mark)] = uint16_t(words_[word][size_t(mark)] + by);
    blocks_[word >> (kBlockShift - 2)] += uint32_t(by);
  }
  marks_ += by;
}

uint8_t SharedGuard::touches(uint64_t from, uint64_t to) const {
  uint32_t near = 0;
  for (uint64_t b = from >> kBlockShift; b <= (to - 1) >> kBlockShift; ++b) near |= blocks_[b];
  if (near == 0) return 0;
  std::array<uint16_t, 3> all{};
  for (uint64_t word = from / 4; word <= (to - 1) / 4; ++word) {
    for (size_t k = 0; k < all.size(); ++k) all[k] |= words_[word][k];
  }
  uint8_t bits = 0;
  for (size_t k = 0; k < all.size(); ++k) bits |= uint8_t((all[k] != 0) << k);
  return bits;
}

void SharedGuard::clear() {
  if (!words_.empty() && marks_ > 0) {
    std::fill(words_.begin(), words_.end(), std::array<uint16_t, 3>{});
    std::fill(blocks_.begin(), blocks_.end(), 0u);
  }
  marks_ = 0;
}

}  // namespace cutegen::ptx
