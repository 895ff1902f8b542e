// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/guard_checks.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace cutegen::ptx {
namespace {

using Mark = SharedGuard::Mark;

const char* verb(const Inst& in) {
  return in.op == Op::load ? "read" : in.op == Op::store ? "write" : "atomic";
}

}  // namespace

void report_held(CtaState& cta, const CtaState& owner, const Warp& w, int lane,
                 const std::string& what, uint64_t from, uint64_t to) {
  Finding f{.kind = "async_copy_pending", .address = from, .buffer = "shared memory"};
  if (const BulkCopy* copy = owner.bulk.find(from, to)) {
    const bool load = copy->kind == BulkKind::load;
    f.message = fmt::format(
        "{} offset {} of shared memory, which the copy at {} {}: wait for its {} "
        "first",
        what, from, cta.place(copy->pc), load ? "has not written yet" : "still reads",
        load ? "mbarrier" : "group");
    f.other = cta.party(copy->pc, copy->warp * 32 + copy->lane, owner.place_of(copy->rank));
  } else {
    const Mbarrier* b = owner.mbarriers.in(from, to);
    f.kind = "bad_mbarrier";
    f.message = fmt::format(
        "{} offset {} of shared memory, which is an mbarrier{}: only mbarrier "
        "instructions may touch it before mbarrier.inval",
        what, from, b ? ", initialised at " + cta.place(b->pc) : "");
  }
  cta.report(w, lane, std::move(f));
}

bool check_guard(CtaState& cta, const CtaState& owner, const WarpAccess& a) {
  if (a.sum.contiguous || a.sum.uniform) {
    if (owner.guard.touches(a.sum.low, a.sum.high + a.bytes()) == 0) return true;
  }
  const uint8_t bad = a.in.op == Op::load ? uint8_t(~SharedGuard::bit(Mark::read)) : uint8_t(~0u);
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t from = a.at[lane], to = from + a.bytes();
    if (!(owner.guard.touches(from, to) & bad)) continue;
    report_held(cta, owner, a.warp, lane, fmt::format("{} of {} bytes at", verb(a.in), a.bytes()),
                from, to);
    return false;
  }
  return true;
}

}  // namespace cutegen::ptx
