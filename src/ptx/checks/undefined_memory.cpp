// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/undefined_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cutegen::ptx {
namespace {

// Whether all addresses are multiples of four bytes.
bool aligned(uint32_t lanes, const uint64_t* at) {
  uint64_t bits = 0;
  for (uint32_t m = lanes; m; m &= m - 1) bits |= at[std::countr_zero(m)];
  return bits % 4 == 0;
}

}  // namespace

UndefinedMemory::UndefinedMemory(int warps, size_t shared_bytes, size_t local_bytes)
    : local_words_(local_bytes / 4),
      shared_((shared_bytes + 3) / 4),
      local_(local_words_ * 32 * size_t(warps)) {}

void UndefinedMemory::begin() {
  std::fill(shared_.begin(), shared_.end(), kNever);
  std::fill(local_.begin(), local_.end(), kNever);
  shared_left_ = shared_.size();
}

bool UndefinedMemory::suspicious(const uint8_t* state, uint32_t lanes, const AddressSummary& sum,
                                 const uint64_t* at, uint32_t bytes) {
  bool all = true;
  if (sum.contiguous) {
    for (uint64_t w = sum.low / 4; w <= (sum.high + bytes - 1) / 4; ++w)
      all &= state[w] == kWritten;
  } else if (bytes <= 4) {
    for (uint32_t m = lanes; m; m &= m - 1) all &= state[at[std::countr_zero(m)] / 4] == kWritten;
  } else if (bytes == 16 && aligned(lanes, at)) {
    static constexpr uint8_t kFour[4] = {kWritten, kWritten, kWritten, kWritten};
    for (uint32_t m = lanes; m; m &= m - 1)
      all &= std::memcmp(state + at[std::countr_zero(m)] / 4, kFour, sizeof kFour) == 0;
  } else {
    for (uint32_t m = lanes; m; m &= m - 1)
      each_word(at[std::countr_zero(m)], bytes, [&](uint64_t w) { all &= state[w] == kWritten; });
  }
  return !all;
}

void UndefinedMemory::store(const UndefinedStep& s, const UndefinedRegisters& values,
                            uint8_t* state, const AddressSummary& sum, const uint64_t* at,
                            size_t* left) {
  size_t unused = 0;
  size_t& count = left ? *left : unused;
  auto set = [&](uint64_t word, uint8_t now) {
    count += size_t(now != kWritten) - size_t(state[word] != kWritten);
    state[word] = now;
  };
  const uint32_t bytes = uint32_t(s.in.size) * s.in.vec;
  if (!values.following() || s.in.op != Op::store) {
    if (sum.contiguous) {
      for (uint64_t w = sum.low / 4; w <= (sum.high + bytes - 1) / 4; ++w) set(w, kWritten);
      return;
    }
    for (uint32_t m = s.mask; m; m &= m - 1)
      each_word(at[std::countr_zero(m)], bytes, [&](uint64_t w) { set(w, kWritten); });
    return;
  }
  for (int k = 0; k < s.in.vec; ++k) {
    const uint32_t undefined = values.mask_of(s.warp, s.in.v[k]);
    for (uint32_t m = s.mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const uint8_t now = undefined >> lane & 1 ? kCopy : kWritten;
      each_word(at[lane] + uint64_t(k) * s.in.size, s.in.size, [&](uint64_t w) { set(w, now); });
    }
  }
}

}  // namespace cutegen::ptx
