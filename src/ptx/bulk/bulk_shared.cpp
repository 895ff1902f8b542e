// SPDX-License-Identifier: Apache-2.0
#include "ptx/bulk/bulk_shared.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/bulk/bulk_undefined.h"
#include "ptx/cta/guard_checks.h"

namespace cutegen::ptx {

bool BulkShared::placed(const Warp& w, const BulkCopy& c, uint64_t at, uint64_t span,
                        uint64_t align) {
  const uint64_t size = cta_.shared.size();
  Finding f{.address = at, .buffer = "shared memory"};
  if (at % align != 0) {
    f.kind = "misaligned";
    f.message = fmt::format("a copy at offset {} of shared memory, which is not a multiple of {}",
                            at, align);
  } else if (at > size || size - at < span) {
    f.kind = "out_of_bounds";
    f.message = fmt::format("a copy of {} bytes at offset {} of shared memory, which has {} bytes",
                            span, at, size);
  } else {
    return true;
  }
  cta_.report(w, c.lane, std::move(f));
  return false;
}

bool BulkShared::target(const Warp& w, const CtaState& owner, const BulkCopy& c, uint64_t span,
                        uint64_t align) {
  if (!placed(w, c, c.shared, span, align)) return false;
  const bool load = c.kind == BulkKind::load;
  bool fine = true;
  c.each_part([&](uint64_t from, uint64_t to) {
    const Part p{.owner = owner, .written = load, .from = from, .to = to};
    fine = fine && free_of_copies(w, c, p) && raced(w, c, p);
  });
  return fine && (load || sources_defined(cta_, w, c));
}

bool BulkShared::source(const Warp& w, const BulkCopy& c) {
  if (!placed(w, c, c.source, c.bytes, 16)) return false;
  const Part p{.owner = cta_, .written = false, .from = c.source, .to = c.source + c.bytes};
  return c.bytes == 0 || (free_of_copies(w, c, p) && raced(w, c, p));
}

// A copy must not write bytes that another copy or an mbarrier uses, nor read bytes that another
// copy will write. Two reductions may overlap.
bool BulkShared::free_of_copies(const Warp& w, const BulkCopy& c, const Part& p) {
  if (!p.owner.guard.any()) return true;
  using Mark = SharedGuard::Mark;
  uint8_t bad = SharedGuard::bit(Mark::written);
  if (p.written) bad |= SharedGuard::bit(Mark::read) | SharedGuard::bit(Mark::mbarrier);
  if (p.written && c.reduces) bad &= uint8_t(~SharedGuard::bit(Mark::written));
  if (!(p.owner.guard.touches(p.from, p.to) & bad)) return true;
  report_held(cta_, p.owner, w, c.lane, p.written ? "a copy to" : "a copy from", p.from, p.to);
  return false;
}

bool BulkShared::raced(const Warp& w, const BulkCopy& c, const Part& p) {
  Hazards* h = p.owner.hazards.get();
  if (!h || !h->shared || !h->clocks.vector()) return true;
  const bool own = &p.owner == &cta_;
  const int warp = own ? w.index : h->clocks.peer(cta_.rank, w.index);
  const Touch touch = c.reduces && p.written ? Touch::atomic
                      : p.written            ? Touch::write
                                             : Touch::read;
  if (h->shared->may_copy(touch, warp, p.from, p.to)) return p.written || fenced(w, c, p);
  const auto other = h->shared->party(touch, warp, p.from, uint32_t(p.to - p.from));
  const int rank = other.rank < 0 && !own ? int(p.owner.rank) : other.rank;
  std::string who = other.is_copy ? "a copy" : fmt::format("warp {}", other.warp);
  if (rank >= 0 && !other.is_copy) who += fmt::format(" of rank {}", rank);
  cta_.report(
      w, c.lane,
      {.kind = "shared_race",
       .message = fmt::format("a copy {} bytes [{}, {}) of shared memory{} and the {} by {}{} are "
                              "not ordered",
                              p.written ? "to" : "from", p.from, p.to,
                              own ? "" : fmt::format(" of rank {}", p.owner.rank),
                              other.wrote ? "write" : "read", who,
                              other.pc >= 0 ? " at " + cta_.place(other.pc) : ""),
       .address = p.from,
       .buffer = "shared memory",
       .other = cta_.party(other.pc, std::max(0, other.warp) * 32, cta_.place_of(rank))});
  return false;
}

bool BulkShared::fenced(const Warp& w, const BulkCopy& c, const Part& p) {
  if (cta_.hazards->shared->visible(w.index, p.from, p.to)) return true;
  cta_.report(
      w, c.lane,
      {.kind = "missing_proxy_fence",
       .message = fmt::format("a copy from bytes [{}, {}) of shared memory, which ordinary "
                              "stores wrote: put fence.proxy.async between them and the copy",
                              p.from, p.to),
       .address = p.from,
       .buffer = "shared memory"});
  return false;
}

void BulkShared::delivered(const BulkCopy& c) {
  Hazards* h = cta_.hazards.get();
  if (!h) return;
  if (h->shared && h->clocks.vector()) {
    const int agent = h->clocks.agent_of(c.mbarrier);
    const Touch touch = c.reduces ? Touch::atomic : Touch::write;
    c.each_part(
        [&](uint64_t from, uint64_t to) { h->shared->copied(touch, agent, c.pc, from, to); });
  }
  if (h->undefined && !c.reduces) define_target(cta_, c);
}

void BulkShared::released(const BulkCopy& c) {
  Hazards* h = cta_.hazards.get();
  if (!h || !h->shared || !h->clocks.vector()) return;
  c.each_part([&](uint64_t from, uint64_t to) { h->shared->released(c.warp, c.pc, from, to); });
}

void BulkShared::source_read(const BulkCopy& c, CtaState& issuer) {
  issuer.guard.remove(SharedGuard::Mark::read, c.source, c.source + c.bytes);
  Hazards* h = issuer.hazards.get();
  if (!h || !h->shared || !h->clocks.vector()) return;
  const int agent = h->clocks.peer(cta_.rank, cta_.hazards->clocks.agent_of(c.mbarrier));
  h->shared->released(agent, c.pc, c.source, c.source + c.bytes);
}

void BulkShared::report_left(const BulkCopy& c, const CtaState& owner) {
  const bool own = &owner == &cta_;
  Warp at = cta_.warps[own && c.rank >= 0 ? 0 : size_t(c.warp)];
  at.current.pc = c.pc;
  std::string what = fmt::format(
      "the CTA ends, but a copy to offset {} of its shared memory has not arrived: wait for the "
      "mbarrier at offset {} first",
      c.shared, c.mbarrier);
  if (!own)
    what = fmt::format(
        "the CTA ends, but a copy to rank {} may still read offset {} of its shared memory",
        owner.rank, c.source);
  cta_.report(at, c.lane,
              {.kind = "async_copy_pending",
               .message = what,
               .address = own ? c.shared : c.source,
               .buffer = "shared memory"});
}

}  // namespace cutegen::ptx
