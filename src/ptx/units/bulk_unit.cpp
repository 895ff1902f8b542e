// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/bulk_unit.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {
namespace {

using Mark = SharedGuard::Mark;
constexpr uint16_t kNaNFill = 0x7ff7;  // what an H200 writes, in every 16 bits

uint64_t lane_value(const Warp& w, const int32_t* address, int lane) {
  uint64_t v = 0;
  const size_t size = address[2] ? 8 : 4;
  std::memcpy(&v, w.registers + address[0] + size_t(lane) * size, size);
  v += uint64_t(int64_t{address[1]});
  return address[2] ? v : v & 0xffffffff;
}

uint32_t lane_word(const Warp& w, int32_t slot, int lane) {
  return words_at(w.registers, slot)[lane];
}

uint16_t lane_half(const Warp& w, int32_t slot, int lane) {
  uint16_t v = 0;
  std::memcpy(&v, w.registers + slot + lane * 2, 2);
  return v;
}

Mark mark_of(const BulkCopy& c) {
  return c.kind == BulkKind::load ? Mark::written : Mark::read;
}

// Stores or reduces the bytes that a copy holds.
void write(BulkChecks& checks, const BulkCopy& c) {
  const std::byte* from = c.held.data();
  for (const TensorRow& r : c.rows) {
    if (r.from == r.to) continue;
    std::byte* to = checks.host(r);
    const size_t n = r.to - r.from;
    if (c.kind == BulkKind::store) std::memcpy(to, from, n);
    for (size_t i = 0; c.kind == BulkKind::reduce && i < n; i += c.element) {
      uint64_t value = 0;
      std::memcpy(&value, from + i, c.element);
      atomic_apply(c.op, c.type, to + i, value, 0);
    }
    from += n;
  }
}

}  // namespace

bool BulkUnit::issue(Warp& w, const Inst& in, uint32_t mask) {
  w.spins = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    if (!issue_lane(w, in, std::countr_zero(m))) return false;
  }
  return true;
}

bool BulkUnit::issue_lane(Warp& w, const Inst& in, int lane) {
  BulkCopy c;
  c.kind = BulkKind(in.sub), c.pc = w.current.pc, c.warp = w.index, c.lane = lane;
  if (in.b >= 0) c.op = AtomicOp(in.b);
  if (in.list[bulk::kCtaMask] >= 0) {
    const uint16_t ctas = lane_half(w, in.list[bulk::kCtaMask], lane);
    if (ctas != 1)
      return checks_.fail(w, lane,
                          fmt::format("a multicast to the CTAs {:#x} of a cluster of one", ctas));
  }
  if (!(in.vec > 0 ? read_tensor(w, in, lane, c) : read_bytes(w, in, lane, c))) return false;
  if (c.kind == BulkKind::prefetch) return true;
  if (!place(w, in, c)) return false;
  Chain* chain = cta_.chain_of(w);
  if (chain && c.kind == BulkKind::load) chain->copy_to(c.mbarrier);
  return start(w, std::move(c));
}

bool BulkUnit::read_tensor(Warp& w, const Inst& in, int lane, BulkCopy& c) {
  const auto map = checks_.map_at(w, lane, lane_value(w, in.list + bulk::kGlobal, lane));
  if (!map) return false;
  TensorPlace at;
  for (size_t i = 0; i < in.vec; ++i)
    at[i] = int32_t(lane_word(w, in.list[bulk::kCoordinates + i], lane));
  if (!checks_.tensor(w, in, lane, *map, at)) return false;
  c.row = map->row_bytes(), c.pitch = map->pitch(), c.swizzle = map->swizzle;
  c.bytes = uint32_t(map->bytes()), c.fill_nan = map->fill_nan, c.element = map->element();
  if (c.kind == BulkKind::reduce) c.type = *atomic_type_of(map->type);
  c.rows = rows_of(*map, at, c.kind == BulkKind::store || c.kind == BulkKind::reduce);
  return checks_.global(w, lane, c);
}

bool BulkUnit::read_bytes(Warp& w, const Inst& in, int lane, BulkCopy& c) {
  const uint64_t global = lane_value(w, in.list + bulk::kGlobal, lane);
  const uint32_t size = lane_word(w, in.list[bulk::kSize], lane);
  c.row = c.pitch = c.bytes = size;
  if (in.c >= 0) c.type = AtomicType(in.c), c.element = checks_.bytes_of(c.type);
  if (!checks_.bytes(w, lane, global, size)) return false;
  if (size > 0) c.rows.push_back({.shared = 0, .global = global, .from = 0, .to = size});
  return checks_.global(w, lane, c);
}

// The side of shared memory, and the mbarrier.
bool BulkUnit::place(Warp& w, const Inst& in, BulkCopy& c) {
  c.shared = lane_value(w, in.list + bulk::kShared, c.lane);
  if (!phases_.own_place(c.shared)) return false;
  const uint64_t span = uint64_t{c.pitch} * c.rows.size();
  if (!checks_.shared(w, c, span, in.vec > 0 ? 128 : 16)) return false;
  if (c.kind != BulkKind::load) return true;
  c.mbarrier = lane_value(w, in.list + bulk::kMbarrier, c.lane);
  if (!phases_.own_place(c.mbarrier)) return false;
  uint64_t at[32] = {};
  at[c.lane] = c.mbarrier;
  const uint32_t mask = 1u << c.lane;
  return phases_.valid_address(w, mask, summarize(at, mask), at) &&
         phases_.live(w, c.lane, c.mbarrier);
}

bool BulkUnit::start(Warp& w, BulkCopy c) {
  if (cta_.bulk.full() && !complete(0)) return false;
  const size_t thread = size_t(c.warp) * 32 + size_t(c.lane);
  c.group = cta_.bulk.group_of(int(thread));
  c.each_part([&](uint64_t from, uint64_t to) { cta_.guard.add(mark_of(c), from, to); });
  ++cta_.mbarriers.changes;
  const bool load = c.kind == BulkKind::load;
  cta_.bulk.all().push_back(std::move(c));
  if (!load || !scheduler_.ends_waits_early()) return true;
  const int32_t here = w.current.pc;
  const bool fine = complete(cta_.bulk.all().size() - 1);
  if (fine) w.current.pc = here;
  return fine;
}

void BulkUnit::commit(const Warp& w, uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) cta_.bulk.commit(w.index * 32 + std::countr_zero(m));
}

bool BulkUnit::wait(Warp& w, const Inst& in, uint32_t mask) {
  auto& copies = cta_.bulk.all();
  for (size_t i = 0; i < copies.size();) {
    BulkCopy& c = copies[i];
    const bool mine = c.warp == w.index && (mask >> c.lane & 1) && c.kind != BulkKind::load;
    const bool ends = mine && c.group + uint64_t(in.imm) < cta_.bulk.group_of(c.warp * 32 + c.lane);
    if (ends && !in.sub) {
      if (!complete(i)) return false;
      continue;
    }
    if (ends && !c.has_read) read_source(c);
    ++i;
  }
  return true;
}

bool BulkUnit::deliver_to(Warp& w, uint64_t mbarrier) {
  const Mbarrier* b = cta_.mbarriers.find(mbarrier);
  const uint64_t phase = b ? b->phase : 0;
  auto& copies = cta_.bulk.all();
  const int32_t here = w.current.pc;
  for (size_t i = 0; i < copies.size() && b && b->phase == phase;) {
    if (copies[i].kind != BulkKind::load || copies[i].mbarrier != mbarrier) {
      ++i;
    } else if (!complete(i)) {
      return false;
    }
  }
  w.current.pc = here;
  return true;
}

bool BulkUnit::complete(size_t index) {
  auto& copies = cta_.bulk.all();
  BulkCopy c = std::move(copies[index]);
  copies.erase(copies.begin() + int64_t(index));
  if (c.kind == BulkKind::load) return arrive(c);
  if (!c.has_read) read_source(c);
  write(checks_, c);
  return true;
}

// The bytes of a load reach shared memory, and its mbarrier counts them.
bool BulkUnit::arrive(BulkCopy& c) {
  c.each_part([&](uint64_t from, uint64_t to) { cta_.guard.remove(Mark::written, from, to); });
  for (const TensorRow& r : c.rows) put_row(c, r);
  checks_.delivered(c);
  Warp& w = cta_.warps[size_t(c.warp)];
  const int32_t here = std::exchange(w.current.pc, c.pc);
  if (!phases_.complete(w, c.lane, c.mbarrier, c.bytes)) return false;
  w.current.pc = here;
  return true;
}

void BulkUnit::put_row(const BulkCopy& c, const TensorRow& r) {
  const std::byte* from = checks_.host(r);
  c.each_piece(r, [&](uint64_t at, uint32_t offset, uint32_t n) {
    std::byte* to = cta_.shared.data() + at;
    const uint32_t begin = std::max(r.from, offset), end = std::min(r.to, offset + n);
    if (begin > offset || end < offset + n) {
      const uint16_t fill = c.fill_nan ? kNaNFill : 0;
      for (uint32_t i = 0; i < n; i += 2) std::memcpy(to + i, &fill, 2);
    }
    if (begin < end) std::memcpy(to + (begin - offset), from + (begin - r.from), end - begin);
  });
}

// Takes the bytes that lie in the tensor out of shared memory.
void BulkUnit::read_source(BulkCopy& c) {
  c.each_part([&](uint64_t from, uint64_t to) { cta_.guard.remove(Mark::read, from, to); });
  for (const TensorRow& r : c.rows) {
    c.each_piece(r, [&](uint64_t at, uint32_t offset, uint32_t n) {
      const uint32_t begin = std::max(r.from, offset), end = std::min(r.to, offset + n);
      const std::byte* from = cta_.shared.data() + at;
      if (begin < end) c.held.insert(c.held.end(), from + (begin - offset), from + (end - offset));
    });
  }
  c.has_read = true;
  checks_.released(c);
}

bool BulkUnit::drain() {
  auto& copies = cta_.bulk.all();
  while (!copies.empty()) {
    if (copies.front().kind == BulkKind::load) return checks_.left(copies.front());
    if (!complete(0)) return false;
  }
  return true;
}

}  // namespace cutegen::ptx
