// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/coalesce.h"

#include <algorithm>
#include <bit>

namespace cutegen::ptx {
namespace {

constexpr uint64_t kSector = 32, kWord = 4;
constexpr int kBanks = 32;

// The number of lanes that shared memory serves at a time.
int lanes_of_group(uint64_t bytes) {
  return bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
}

uint32_t group_at(int first, int lanes) {
  return lanes == 32 ? ~0u : ((1u << lanes) - 1) << first;
}

uint32_t groups_in(uint32_t mask, int lanes) {
  uint32_t groups = 0;
  for (int first = 0; first < 32; first += lanes) groups += (mask & group_at(first, lanes)) != 0;
  return groups;
}

// Whether lanes n and n^1, or n and n^2, have the same address whenever both are active.
bool paired(const uint64_t* at, uint32_t mask) {
  for (int other : {1, 2}) {
    bool same = true;
    for (int lane = 0; lane < 32 && same; ++lane) {
      const bool both = (mask >> lane & 1) && (mask >> (lane ^ other) & 1);
      same = !both || at[lane] == at[lane ^ other];
    }
    if (same) return true;
  }
  return false;
}

// The number of distinct words in the busiest bank. For an atomic, lanes with the same word count
// separately.
uint32_t busiest_bank(const uint64_t* at, uint32_t group, uint64_t words, bool atomic) {
  uint8_t depth[kBanks] = {};
  uint64_t held[kBanks][kBanks];
  uint32_t most = 0;
  for (uint32_t m = group; m; m &= m - 1) {
    const uint64_t first = at[std::countr_zero(m)] / kWord;
    for (uint64_t w = first; w < first + words; ++w) {
      const size_t bank = w % kBanks;
      uint8_t& n = depth[bank];
      const bool known = !atomic && std::find(held[bank], held[bank] + n, w) != held[bank] + n;
      if (known) continue;
      held[bank][n++] = w;
      most = std::max<uint32_t>(most, n);
    }
  }
  return most;
}

uint32_t distinct(uint64_t* list, int n) {
  if (!std::is_sorted(list, list + n)) std::sort(list, list + n);
  return uint32_t(std::unique(list, list + n) - list);
}

}  // namespace

uint32_t sectors_of(const AddressSummary& s, const uint64_t* at, uint32_t mask, uint64_t bytes) {
  if (s.uniform || s.contiguous)
    return uint32_t((s.high + bytes - 1) / kSector - s.low / kSector + 1);
  uint64_t list[32];
  int n = 0;
  for (uint32_t m = mask; m; m &= m - 1) list[n++] = at[std::countr_zero(m)] / kSector;
  return distinct(list, n);
}

Wavefronts wavefronts_of(const AddressSummary& s, const uint64_t* at, uint32_t mask, uint64_t bytes,
                         SharedUse use) {
  const bool atomic = use == SharedUse::atomic;
  int lanes = lanes_of_group(bytes);
  if (use == SharedUse::load && lanes < 32 && !s.contiguous && (s.uniform || paired(at, mask)))
    lanes *= 2;
  Wavefronts w;
  w.least = groups_in(mask, lanes);
  w.count = w.least;
  if (s.contiguous && (!atomic || bytes >= kWord)) return w;
  if (s.uniform && !atomic) return w;
  w.count = 0;
  const uint64_t words = std::max<uint64_t>(1, bytes / kWord);
  for (int first = 0; first < 32; first += lanes) {
    const uint32_t group = mask & group_at(first, lanes);
    if (group) w.count += busiest_bank(at, group, words, atomic);
  }
  return w;
}

uint32_t local_sectors_of(const AddressSummary& s, const uint64_t* at, uint32_t mask,
                          uint64_t bytes) {
  const uint64_t words = std::max<uint64_t>(1, bytes / kWord);
  if (s.uniform) return uint32_t(words) * groups_in(mask, 8);
  uint64_t list[128];
  int n = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint64_t lane = uint64_t(std::countr_zero(m));
    for (uint64_t k = 0; k < words; ++k) list[n++] = (at[lane] / kWord + k) * 4 + lane / 8;
  }
  return distinct(list, n);
}

const Wavefronts* PatternCache::find(size_t pc, const uint64_t* at, uint64_t period) const {
  if (entry_of_[pc] == 0) return nullptr;
  const Entry& e = entries_[entry_of_[pc] - 1];
  uint64_t differs = e.phase ^ (at[0] % period);
  for (int lane = 0; lane < 32; ++lane) differs |= (at[lane] - at[0]) ^ e.distance[lane];
  return differs ? nullptr : &e.cost;
}

void PatternCache::keep(size_t pc, const uint64_t* at, uint64_t period, Wavefronts cost) {
  if (entry_of_[pc] == 0) {
    entries_.emplace_back();
    entry_of_[pc] = uint32_t(entries_.size());
  }
  Entry& e = entries_[entry_of_[pc] - 1];
  for (int lane = 0; lane < 32; ++lane) e.distance[lane] = at[lane] - at[0];
  e.phase = at[0] % period;
  e.cost = cost;
}

}  // namespace cutegen::ptx
