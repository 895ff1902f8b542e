// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/wgmma_checks.h"

#include <fmt/format.h>

#include <bit>

#include "ptx/decode/patterns.h"

namespace cutegen::ptx {

void WgmmaChecks::report(const Warp& w, const WgmmaState::Use& use, const char* verb) {
  cta_.report(w, std::countr_zero(w.current.mask),
              {.kind = "wgmma_pending",
               .message = fmt::format("{} {} of the wgmma at {} before wgmma.wait_group", verb,
                                      use.fragment ? "a register of A" : "an accumulator",
                                      cta_.place(use.pc)),
               .other = cta_.party(use.pc, w.index * 32, cta_.at)});
}

bool WgmmaChecks::unused(const Warp& w, int32_t slot, const char* verb) {
  WgmmaState& s = *cta_.wgmma;
  if (!s.pending(w.index, slot)) return true;
  report(w, s.use(w.index, slot), verb);
  return false;
}

bool WgmmaChecks::follow(const Warp& w, const Inst& in, uint32_t mask) {
  if (mask == 0 || in.op == Op::wgmma) return true;
  WgmmaState& s = *cta_.wgmma;
  const Program& program = cta_.job.program;
  const auto& range = program.effect_of[size_t(w.current.pc)];
  if (is_copy(program, size_t(w.current.pc))) {
    const WgmmaState::Use from = s.use(w.index, program.effects[range.begin]);
    const int32_t to = program.effects[range.writes];
    const bool passes_on = from.group > s.orders[size_t(w.index)].completed;
    if (!passes_on && !unused(w, to, "write of")) return false;
    s.use(w.index, to) = from;
    return true;
  }
  for (uint32_t i = range.begin; i < range.writes; ++i)
    if (!unused(w, program.effects[i], "read of")) return false;
  for (uint32_t i = range.writes; i < range.end; ++i) {
    if (!unused(w, program.effects[i], "write of")) return false;
    s.use(w.index, program.effects[i]).written = s.orders[size_t(w.index)].fences + 1;
  }
  return true;
}

// Checks that no register was written after the last wgmma.fence. The first product needs a fence,
// too.
bool WgmmaChecks::fenced(const Warp& w, const Inst& in, const WgmmaOp& op) {
  WgmmaState& s = *cta_.wgmma;
  const uint32_t fences = s.orders[size_t(w.index)].fences;
  const int registers = op.d + (op.a_in_registers ? op.a() : 0);
  const WgmmaState::Use* uses = s.uses(w.index);
  bool bad = fences == 0;
  for (int i = 0; i < registers; ++i) bad |= uses[in.list[i] / 64].written == fences + 1;
  if (!bad) return true;
  cta_.report(
      w, 0,
      {.kind = "missing_wgmma_fence",
       .message = fences == 0
                      ? "the first wgmma.mma_async of a warpgroup needs a wgmma.fence before it"
                      : "a register of this wgmma.mma_async was written after the last "
                        "wgmma.fence: put a wgmma.fence after the write"});
  return false;
}

// Only products of one shape may share accumulators without a fence between them.
bool WgmmaChecks::same_shape(const Warp& w, const Inst& in, const WgmmaOp& op) {
  WgmmaState& s = *cta_.wgmma;
  const WgmmaState::Use* uses = s.uses(w.index);
  const uint32_t fences = s.orders[size_t(w.index)].fences;
  int32_t same = -1;  // the place of a product of this shape
  for (int i = 0; i < op.d; ++i) {
    const WgmmaState::Use& use = uses[in.list[i] / 64];
    if (use.pc == same || use.pc < 0 || use.fragment || use.fences != fences) continue;
    const Inst& before = cta_.job.program.code[size_t(use.pc)];
    const WgmmaOp& other = cta_.job.program.wgmmas[size_t(before.target)];
    if (other.n == op.n && other.run == op.run) {
      same = use.pc;
      continue;
    }
    cta_.report(w, 0,
                {.kind = "missing_wgmma_fence",
                 .message = fmt::format("this wgmma.mma_async and the one at {} have one "
                                        "accumulator, but different shapes: a wgmma.fence must lie "
                                        "between",
                                        cta_.place(use.pc)),
                 .other = cta_.party(use.pc, w.index * 32, cta_.at)});
    return false;
  }
  return true;
}

// A quick test that product() finds no fault: all accumulators had the same last product, of this
// shape.
bool WgmmaChecks::surely_fine(const Warp& w, const Inst& in, const WgmmaOp& op) {
  WgmmaState& s = *cta_.wgmma;
  const WgmmaState::Use* uses = s.uses(w.index);
  const uint32_t fences = s.orders[size_t(w.index)].fences;
  const int32_t last = uses[in.list[0] / 64].pc;
  if (last < 0 || fences == 0) return false;
  const WgmmaOp& other =
      cta_.job.program.wgmmas[size_t(cta_.job.program.code[size_t(last)].target)];
  bool fine = other.n == op.n && other.run == op.run;
  for (int i = 0; i < op.d; ++i) {
    const WgmmaState::Use& use = uses[in.list[i] / 64];
    fine &= use.written != fences + 1 && use.pc == last && !use.fragment;
  }
  for (int i = op.d; i < op.d + (op.a_in_registers ? op.a() : 0); ++i) {
    const WgmmaState::Use& use = uses[in.list[i] / 64];
    fine &= use.written != fences + 1 && use.fragment;
  }
  return fine;
}

bool WgmmaChecks::product(const Warp& w, const Inst& in, const WgmmaOp& op) {
  const bool fine = surely_fine(w, in, op);
  if (!fine && !(fenced(w, in, op) && same_shape(w, in, op))) return false;
  WgmmaState& s = *cta_.wgmma;
  const int registers = op.d + (op.a_in_registers ? op.a() : 0);
  WgmmaState::Use* uses = s.uses(w.index);
  const WgmmaState::Order& order = s.orders[size_t(w.index)];
  for (int i = 0; i < registers; ++i) {
    const bool fragment = i >= op.d;
    WgmmaState::Use& use = uses[in.list[i] / 64];
    // Products may use the same accumulators one after the other, and may share a fragment.
    if (!fine && use.fragment != fragment &&
        !unused(w, in.list[i], fragment ? "read of" : "write of"))
      return false;
    use.group = order.committed + 1, use.fences = order.fences;
    use.pc = w.current.pc, use.fragment = fragment;
  }
  return true;
}

bool WgmmaChecks::operands(const WarpAccess& a, const CtaState& owner) {
  if (a.in.op == Op::load) return true;
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const WgmmaState::Read* r = owner.wgmma->reader(a.at[lane], a.at[lane] + a.bytes());
    if (!r) continue;
    cta_.report(a.warp, lane,
                {.kind = "wgmma_operand_overwritten",
                 .message = fmt::format(
                     "write of {} bytes at offset {} of shared memory, which the wgmma of warp {} "
                     "at {} may still read: wait for its group first",
                     a.bytes(), a.at[lane], r->warp, cta_.place(r->pc)),
                 .address = a.at[lane],
                 .buffer = "shared memory",
                 .other = cta_.party(r->pc, r->warp * 32, owner.at)});
    return false;
  }
  return true;
}

}  // namespace cutegen::ptx
