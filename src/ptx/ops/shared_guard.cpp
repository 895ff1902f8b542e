// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/shared_guard.h"

#include <algorithm>

namespace cutegen::ptx {

void SharedGuard::change(Mark mark, uint64_t from, uint64_t to, int by) {
  if (from >= to) return;
  if (blocks_.empty()) {
    for (auto& words : words_) words.resize(bytes_ / 4 + 1);
    blocks_.resize((bytes_ >> kBlockShift) + 1);
  }
  const uint64_t first = from / 4, end = (to - 1) / 4 + 1;
  uint16_t* const words = words_[size_t(mark)].data();
  for (uint64_t word = first; word < end; ++word) words[word] = uint16_t(words[word] + by);
  for (uint64_t word = first; word < end;) {
    const uint64_t block = word >> (kBlockShift - 2);
    const uint64_t next = std::min(end, (block + 1) << (kBlockShift - 2));
    blocks_[block] += uint32_t(by * int(next - word));
    word = next;
  }
  marks_ += by;
}

uint8_t SharedGuard::touches(uint64_t from, uint64_t to) const {
  uint32_t near = 0;
  for (uint64_t b = from >> kBlockShift; b <= (to - 1) >> kBlockShift; ++b) near |= blocks_[b];
  if (near == 0) return 0;
  std::array<uint16_t, 3> all{};
  for (size_t k = 0; k < all.size(); ++k)
    for (uint64_t word = from / 4; word <= (to - 1) / 4; ++word) all[k] |= words_[k][word];
  uint8_t bits = 0;
  for (size_t k = 0; k < all.size(); ++k) bits |= uint8_t((all[k] != 0) << k);
  return bits;
}

void SharedGuard::clear() {
  if (!blocks_.empty() && marks_ > 0) {
    for (auto& words : words_) std::fill(words.begin(), words.end(), uint16_t{0});
    std::fill(blocks_.begin(), blocks_.end(), 0u);
  }
  marks_ = 0;
}

}  // namespace cutegen::ptx
