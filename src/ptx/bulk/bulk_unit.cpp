// SPDX-License-Identifier: Apache-2.0
#include "ptx/bulk/bulk_unit.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "ptx/bulk/bulk_move.h"

namespace cutegen::ptx {
namespace {

using Mark = SharedGuard::Mark;

Mark mark_of(const BulkCopy& c) {
  return c.kind == BulkKind::load ? Mark::written : Mark::read;
}

uint64_t alignment(const Inst& in, const BulkCopy& c) {
  if (c.from == BulkSource::registers) return std::max<uint64_t>(c.held.size(), 1);
  return in.vec > 0 ? 128 : 16;
}

std::string wrong_ctas(uint16_t ctas, size_t size) {
  return fmt::format("a multicast to the CTAs {:#x} of a cluster of {}", ctas, size);
}

std::string wrong_ranks(size_t memory, size_t mbarrier) {
  return fmt::format(
      "a copy to the shared memory of rank {} with an mbarrier of rank {}: both must lie in one "
      "CTA",
      memory, mbarrier);
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
  if (!reader_.read(w, in, lane, c)) return false;
  if (c.kind == BulkKind::prefetch) return true;
  if (c.kind != BulkKind::load) return store(w, in, std::move(c));
  const auto ctas = BulkReader::ctas(w, in, lane);
  return ctas ? multicast(w, in, *ctas, c) : load(w, in, std::move(c));
}

bool BulkUnit::store(Warp& w, const Inst& in, BulkCopy c) {
  c.shared = lane_address(w, in.list + bulk::kShared, c.lane);
  if (phases_.owner_of(w, c.lane, c.shared) != &cta_) {
    checks_.fail(w, c.lane, "a copy to global memory from another CTA's shared memory");
    return false;
  }
  const uint64_t span = uint64_t{c.pitch} * c.rows.size();
  if (!shared_.target(w, cta_, c, span, alignment(in, c))) return false;
  c.group = cta_.bulk.group_of(c.warp * 32 + c.lane);
  return hold(w, cta_, std::move(c));
}

bool BulkUnit::load(Warp& w, const Inst& in, BulkCopy c) {
  c.shared = lane_address(w, in.list + bulk::kShared, c.lane);
  c.mbarrier = lane_address(w, in.list + bulk::kMbarrier, c.lane);
  CtaState* owner = phases_.owner_of(w, c.lane, c.shared);
  CtaState* counts = owner ? phases_.owner_of(w, c.lane, c.mbarrier) : nullptr;
  if (!counts) return false;
  if (owner == counts) return send(w, in, *owner, std::move(c));
  return checks_.fail(w, c.lane, wrong_ranks(owner->rank, counts->rank)), false;
}

// The bytes and the mbarrier signal go to the same offsets in each CTA.
bool BulkUnit::multicast(Warp& w, const Inst& in, uint16_t ctas, const BulkCopy& c) {
  const size_t size = cta_.cluster ? cta_.cluster->size() : 1;
  if (ctas == 0 || ctas >> size != 0) return checks_.fail(w, c.lane, wrong_ctas(ctas, size)), false;
  BulkCopy one = c;
  one.shared = lane_address(w, in.list + bulk::kShared, c.lane);
  one.mbarrier = lane_address(w, in.list + bulk::kMbarrier, c.lane);
  if (!phases_.owner_of(w, c.lane, one.shared) || !phases_.owner_of(w, c.lane, one.mbarrier))
    return false;
  for (uint32_t m = ctas; m; m &= m - 1) {
    const size_t rank = size_t(std::countr_zero(m));
    uint64_t at = one.shared;
    if (rank != cta_.rank && at < kSharedOfCta) at |= uint64_t(rank + 1) << kRankShift;
    CtaState* owner = phases_.owner_of(w, c.lane, at);
    if (!owner || !send(w, in, *owner, one)) return false;
  }
  return true;
}

bool BulkUnit::send(Warp& w, const Inst& in, CtaState& owner, BulkCopy c) {
  const uint64_t span = uint64_t{c.pitch} * c.rows.size();
  if (&owner != &cta_) c.rank = int(cta_.rank);
  if (!shared_.target(w, owner, c, span, alignment(in, c))) return false;
  if (c.from == BulkSource::shared && !shared_.source(w, c)) return false;
  if (!phases_.ready(w, c.lane, owner, c.mbarrier)) return false;
  if (Chain* chain = cta_.chain_of(w); chain && &owner == &cta_) chain->copy_to(c.mbarrier);
  if (&owner != &cta_) cta_.counting->remote(c.pc, 1u << c.lane, c.bytes);
  if (c.from == BulkSource::shared && c.bytes > 0)
    cta_.guard.add(Mark::read, c.source, c.source + c.bytes);
  return hold(w, owner, std::move(c));
}

bool BulkUnit::hold(Warp& w, CtaState& owner, BulkCopy c) {
  if (owner.bulk.full() && !complete_in(owner, 0)) return false;
  c.each_part([&](uint64_t from, uint64_t to) { owner.guard.add(mark_of(c), from, to); });
  ++owner.mbarriers.changes;
  const bool load = c.kind == BulkKind::load;
  if (cta_.hazards && (!load || &owner != &cta_)) cta_.hazards->signal(w.index);
  owner.bulk.all().push_back(std::move(c));
  if (!load || !scheduler_.ends_waits_early()) return true;
  const int32_t here = w.current.pc;
  const bool fine = complete_in(owner, owner.bulk.all().size() - 1);
  if (fine) w.current.pc = here;
  return fine;
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

// Completes a copy to another CTA. Reports a fault as a finding of this CTA, because this CTA is
// running.
bool BulkUnit::complete_in(CtaState& owner, size_t index) {
  if (&owner == &cta_) return complete(index);
  MbarrierPhases phases(owner);
  if (BulkUnit(owner, scheduler_, phases).complete(index)) return true;
  cta_.status = owner.status, cta_.finding = owner.finding, cta_.reason = owner.reason;
  return false;
}

bool BulkUnit::complete(size_t index) {
  auto& copies = cta_.bulk.all();
  BulkCopy c = std::move(copies[index]);
  copies.erase(copies.begin() + int64_t(index));
  if (c.kind == BulkKind::load) return arrive(c);
  if (!c.has_read) read_source(c);
  write_rows(cta_, c);
  return true;
}

// Writes the bytes of a load to shared memory, and counts them at its mbarrier.
bool BulkUnit::arrive(BulkCopy& c) {
  CtaState* issuer = c.rank < 0 ? &cta_ : cta_.cluster->at(size_t(c.rank));
  if (c.from == BulkSource::shared && !issuer) return true;  // the launch ends
  c.each_part([&](uint64_t from, uint64_t to) { cta_.guard.remove(Mark::written, from, to); });
  put_rows(cta_, c, issuer ? issuer->shared.data() : nullptr);
  shared_.delivered(c);
  if (c.from == BulkSource::shared && c.bytes > 0) shared_.source_read(c, *issuer);
  Warp at = cta_.warps[size_t(c.warp)];  // all CTAs have the same number of warps
  at.current.pc = c.pc;
  if (phases_.complete(at, c.lane, cta_, c.mbarrier, c.bytes)) return true;
  cta_.finding.cta = cta_.place_of(c.rank);
  return false;
}

void BulkUnit::read_source(BulkCopy& c) {
  c.each_part([&](uint64_t from, uint64_t to) { cta_.guard.remove(Mark::read, from, to); });
  take_rows(cta_, c);
  c.has_read = true;
  shared_.released(c);
}

bool BulkUnit::drain() {
  auto& copies = cta_.bulk.all();
  while (!copies.empty()) {
    if (copies.front().kind == BulkKind::load)
      return shared_.report_left(copies.front(), cta_), false;
    if (!complete(0)) return false;
  }
  for (size_t rank = 0; cta_.cluster && rank < cta_.cluster->size(); ++rank) {
    const CtaState* owner = cta_.cluster->at(rank);
    if (!owner || owner == &cta_) continue;
    for (const BulkCopy& c : owner->bulk.all()) {
      if (c.from == BulkSource::shared && c.rank == int(cta_.rank))
        return shared_.report_left(c, *owner), false;
    }
  }
  return true;
}

}  // namespace cutegen::ptx
