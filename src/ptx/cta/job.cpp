// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/job.h"

#include <cstring>

namespace cutegen::ptx {

uint64_t Pulls::before(std::byte* place, uint8_t bytes) {
  auto [at, fresh] = words.try_emplace(place);
  Word& word = at->second;
  if (fresh) {
    word.bytes = bytes;
    std::memcpy(word.first.data(), place, bytes);
  }
  const double k = double(word.pulls++);
  return uint64_t((k + 1) * stands_for) - uint64_t(k * stands_for) - 1;
}

void Pulls::restore() {
  for (auto& [place, word] : words) std::memcpy(place, word.first.data(), word.bytes);
  words.clear();
}

}  // namespace cutegen::ptx
