// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/guard_checks.h"

#include <fmt/format.h>

#include <bit>

namespace cutegen::ptx {
namespace {

using Mark = SharedGuard::Mark;

const char* verb(const Inst& in) {
  return in.op == Op::load ? "read" : in.op == Op::store ? "write" : "atomic";
}

bool report_mbarrier(CtaState& cta, const WarpAccess& a, int lane) {
  const uint64_t from = a.at[lane];
  const Mbarrier* b = cta.mbarriers.in(from, from + a.bytes());
  cta.report(a.warp, lane,
             {.kind = "bad_mbarrier",
              .message = fmt::format(
                  "{} of {} bytes at offset {} of shared memory, which is an mbarrier{}: only "
                  "mbarrier instructions may touch it before mbarrier.inval",
                  verb(a.in), a.bytes(), from, b ? ", initialised at " + cta.place(b->pc) : ""),
              .address = from,
              .buffer = "shared memory"});
  return false;
}

}  // namespace

bool check_guard(CtaState& cta, const WarpAccess& a) {
  if (a.sum.contiguous || a.sum.uniform) {
    if (cta.guard.touches(a.sum.low, a.sum.high + a.bytes()) == 0) return true;
  }
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint8_t marks = cta.guard.touches(a.at[lane], a.at[lane] + a.bytes());
    if (marks & SharedGuard::bit(Mark::mbarrier)) return report_mbarrier(cta, a, lane);
  }
  return true;
}

}  // namespace cutegen::ptx
