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

// PTX ISA, "%cluster_ctarank": x counts fastest.
int64_t Job::rank_of(const std::array<int64_t, 3>& cta) const {
  const auto& c = config.cluster;
  return cta[0] % c[0] + c[0] * (cta[1] % c[1] + c[1] * (cta[2] % c[2]));
}

int64_t Job::unit_of(const std::array<int64_t, 3>& cta) const {
  const auto &c = config.cluster, &g = config.grid;
  return cta[0] / c[0] + g[0] / c[0] * (cta[1] / c[1] + g[1] / c[1] * (cta[2] / c[2]));
}

int64_t Job::cta_of(int64_t unit, int64_t rank) const {
  const auto &c = config.cluster, &g = config.grid;
  const int64_t units[] = {g[0] / c[0], g[1] / c[1]};
  const int64_t x = unit % units[0] * c[0] + rank % c[0],
                y = unit / units[0] % units[1] * c[1] + rank / c[0] % c[1],
                z = unit / (units[0] * units[1]) * c[2] + rank / (c[0] * c[1]);
  return x + g[0] * (y + g[1] * z);
}

}  // namespace cutegen::ptx
