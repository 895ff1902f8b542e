// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/shared_races.h"

#include <algorithm>
#include <bit>

namespace cutegen::ptx {
namespace {

// cells_ with labels: label << 8 | atomic << 7 | warp or agent
uint64_t labelled(uint32_t label, bool is_atomic, int agent) {
  return uint64_t(label) << 8 | uint64_t(is_atomic) << 7 | uint64_t(agent);
}
int agent_in(uint64_t cell) {
  return int(cell & 0x7f);
}

// The lanes with a granule of their bytes for which `is_bad` holds; it is called for every granule.
template <class F>
uint32_t lanes_where(uint32_t lanes, const uint64_t* at, uint32_t bytes, int shift, F is_bad) {
  uint32_t bad = 0;
  for (uint32_t m = lanes; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const size_t end = (at[lane] + bytes - 1) >> shift;
    for (size_t g = at[lane] >> shift; g <= end; ++g) bad |= uint32_t(is_bad(g)) << lane;
  }
  return bad;
}

// With barriers of the whole CTA: notes an access of a warp in a cell. `atomics`: the warps with
// atomic accesses, null if the kernel has none. Whether an access of another warp conflicts.
bool note(Touch touch, int warp, uint64_t& cell, uint32_t* atomics) {
  const uint64_t bit = uint64_t{1} << warp, before = cell;
  const uint64_t readers = before & 0xffffffff, writers = before >> 32;
  const uint64_t now = before | (touch == Touch::read    ? bit
                                 : touch == Touch::write ? bit << 32
                                                         : 0);
  if (now != before) cell = now;
  if (touch == Touch::read) {
    // A warp that wrote the same value itself reads its own write.
    const bool bad = (writers & ~bit) != 0 && (writers & bit) == 0;
    return bad || (atomics && (*atomics & ~bit) != 0);
  }
  const bool bad = ((readers | writers) & ~bit) != 0;
  if (!atomics) return bad;
  const bool atomic_bad = touch == Touch::write && (*atomics & ~bit) != 0;
  if (touch == Touch::atomic) *atomics |= uint32_t(bit);
  return bad || atomic_bad;
}

}  // namespace

SharedRaces::SharedRaces(const HazardFacts& facts, const Clocks& clocks, int warps,
                         size_t shared_bytes)
    : facts_(facts),
      clocks_(clocks),
      warps_(size_t(warps)),
      granules_((shared_bytes >> facts.shared_shift) + 1),
      cells_(granules_),
      traces_(facts.access_pc.size() * size_t(warps)) {
  if (clocks.vector())
    reads_.resize(granules_ * warps_);
  else if (facts.shared_atomics)
    atomics_.resize(granules_);
}

void SharedRaces::begin() {
  low_ = 0, high_ = granules_ - 1;
  join();
  std::fill(reads_.begin(), reads_.end(), 0);
  std::fill(traces_.begin(), traces_.end(), Trace{});
}

void SharedRaces::join() {
  if (low_ <= high_) {
    std::fill(cells_.begin() + int64_t(low_), cells_.begin() + int64_t(high_) + 1, 0);
    if (!atomics_.empty())
      std::fill(atomics_.begin() + int64_t(low_), atomics_.begin() + int64_t(high_) + 1, 0);
  }
  low_ = granules_, high_ = 0;
}

uint32_t SharedRaces::touch(Touch touch, int warp, int32_t pc, uint32_t lanes,
                            const AddressSummary& s, const uint64_t* at, uint32_t bytes) {
  const uint64_t end = s.high + bytes;
  if (const int32_t i = facts_.access_index[size_t(pc)]; i >= 0) {
    traces_[size_t(warp) * facts_.access_pc.size() + size_t(i)] = {
        clocks_.label(warp), uint32_t(s.low), uint32_t(end), s.contiguous ? bytes : 0};
  }
  if (!clocks_.vector()) return simple(touch, warp, lanes, s, at, bytes);
  return lanes_where(lanes, at, bytes, facts_.shared_shift,
                     [&](size_t g) { return partial(touch, warp, g); });
}

uint32_t SharedRaces::simple(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                             const uint64_t* at, uint32_t bytes) {
  const int shift = facts_.shared_shift;
  const size_t first = s.low >> shift, last = (s.high + bytes - 1) >> shift;
  low_ = std::min(low_, first), high_ = std::max(high_, last);
  const uint64_t bit = uint64_t{1} << warp;
  if (atomics_.empty() && (s.contiguous || s.uniform)) {
    const uint64_t mark = touch == Touch::read ? bit : bit << 32;
    uint64_t all = 0;
    for (size_t g = first; g <= last; ++g) {
      all |= cells_[g];
      cells_[g] |= mark;
    }
    const uint64_t others = touch == Touch::read ? all >> 32 : all | all >> 32;
    if ((others & 0xffffffff & ~bit) == 0) return 0;
    return lanes_where(lanes, at, bytes, shift, [&](size_t g) {
      int other = 0;
      bool wrote = false;
      return clash(touch, warp, g, other, wrote);
    });
  }
  if (touch == Touch::read && atomics_.empty() && bytes == 1u << shift) {  // the hottest loop
    uint32_t bad = 0;
    uint64_t* cells = cells_.data();
    for (uint32_t m = lanes; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      uint64_t& cell = cells[at[lane] >> shift];
      const uint64_t writers = cell >> 32;
      bad |= uint32_t((writers & ~bit) != 0 && (writers & bit) == 0) << lane;
      if (!(cell & bit)) cell |= bit;
    }
    return bad;
  }
  return lanes_where(lanes, at, bytes, shift, [&](size_t g) {
    return note(touch, warp, cells_[g], atomics_.empty() ? nullptr : &atomics_[g]);
  });
}

bool SharedRaces::partial(Touch touch, int warp, size_t g) {
  int other = 0;
  bool wrote = false;
  const bool bad = clash(touch, warp, g, other, wrote);
  if (touch == Touch::read)
    reads_[g * warps_ + size_t(warp)] = clocks_.label(warp);
  else
    cells_[g] = labelled(clocks_.label(warp), touch == Touch::atomic, warp);
  return bad;
}

// Finds another warp with an access to granule g that nothing orders before one by `warp`.
bool SharedRaces::clash(Touch touch, int warp, size_t g, int& other, bool& wrote) const {
  const uint64_t cell = cells_[g];
  wrote = true;
  if (!clocks_.vector()) {
    const uint32_t bit = 1u << warp, writers = uint32_t(cell >> 32), readers = uint32_t(cell);
    uint32_t found = touch == Touch::read && (writers & bit) ? 0 : writers & ~bit;
    if (!found && !atomics_.empty() && touch != Touch::atomic) found = atomics_[g] & ~bit;
    if (!found && touch != Touch::read) found = readers & ~bit, wrote = false;
    other = std::countr_zero(found);
    return found != 0;
  }
  other = agent_in(cell);
  const bool both_atomic = touch == Touch::atomic && (cell >> 7 & 1);
  if (cell && !both_atomic && !clocks_.ordered(warp, other, uint32_t(cell >> 8))) return true;
  wrote = false;
  if (touch == Touch::read) return false;
  for (size_t u = 0; u < warps_; ++u) {
    other = int(u);
    if (!clocks_.ordered(warp, other, reads_[g * warps_ + u])) return true;
  }
  return false;
}

SharedRaces::Party SharedRaces::party(Touch touch, int warp, uint64_t at, uint32_t bytes) const {
  Party p;
  for (size_t g = at >> facts_.shared_shift; g <= (at + bytes - 1) >> facts_.shared_shift; ++g) {
    if (clash(touch, warp, g, p.warp, p.wrote)) break;
    p.warp = -1;
  }
  if (p.warp < 0) return p;
  if (clocks_.is_agent(p.warp)) {
    p.is_copy = true, p.pc = copy_pc_[size_t(p.warp)];
    return p;
  }
  for (size_t i = 0; i < facts_.access_pc.size(); ++i) {
    const Trace& t = traces_[size_t(p.warp) * facts_.access_pc.size() + i];
    if (t.end <= at || t.low >= at + bytes || facts_.access_writes[i] != p.wrote) continue;
    if (clocks_.ordered(warp, p.warp, t.label)) continue;
    p.pc = facts_.access_pc[i];
    p.lane = t.stride ? int((std::max<uint64_t>(at, t.low) - t.low) / t.stride) : -1;
    if (p.lane >= 0) break;  // certain
  }
  return p;
}

bool SharedRaces::may_copy(Touch touch, int warp, uint64_t from, uint64_t to) const {
  int other = 0;
  bool wrote = false;
  for (size_t g = from >> facts_.shared_shift; g <= (to - 1) >> facts_.shared_shift; ++g)
    if (clash(touch, warp, g, other, wrote)) return false;
  return true;
}

bool SharedRaces::visible(int warp, uint64_t from, uint64_t to) const {
  for (size_t g = from >> facts_.shared_shift; g <= (to - 1) >> facts_.shared_shift; ++g) {
    const int writer = agent_in(cells_[g]);
    if (!cells_[g] || clocks_.is_agent(writer)) continue;
    if (!clocks_.visible(warp, writer, uint32_t(cells_[g] >> 8))) return false;
  }
  return true;
}

void SharedRaces::copied(int agent, int32_t pc, uint64_t from, uint64_t to) {
  copy_pc_[size_t(agent)] = pc;
  for (size_t g = from >> facts_.shared_shift; g <= (to - 1) >> facts_.shared_shift; ++g)
    cells_[g] = labelled(clocks_.label(agent), false, agent);
}

void SharedRaces::released(int warp, uint64_t from, uint64_t to) {
  for (size_t g = from >> facts_.shared_shift; g <= (to - 1) >> facts_.shared_shift; ++g)
    reads_[g * warps_ + size_t(warp)] = clocks_.label(warp);
}

}  // namespace cutegen::ptx
