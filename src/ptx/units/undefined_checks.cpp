// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/undefined_checks.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace cutegen::ptx {

bool UndefinedChecks::follow(const Warp& w, const Inst& in, uint32_t mask) {
  const auto trouble = undefined().follow({.registers = w.registers,
                                           .in = in,
                                           .pc = w.current.pc,
                                           .warp = w.index,
                                           .mask = mask,
                                           .current = w.current.mask});
  if (!trouble) return true;
  cta_.report(w, trouble->lane,
              finding(trouble->origin, fmt::format("{} depends on", trouble->what)));
  return false;
}

Finding UndefinedChecks::finding(const Origin& o, const std::string& what) const {
  const Job& job = cta_.job;
  std::string source = "a register";
  if (o.space == Space::shared || o.space == Space::local)
    source =
        fmt::format("{} memory at offset {}", o.space == Space::shared ? "shared" : "local",
                    o.space == Space::shared ? o.at : o.at % uint64_t(job.program.local_bytes));
  if (o.space == Space::global)
    source = fmt::format("{} at offset {}", job.memory.buffers[size_t(o.buffer)].name, o.at);
  return {.kind = "uninitialised",
          .message =
              fmt::format("{} {}, {} (read by thread {} at {})", what, source,
                          o.copied ? "which holds a value that nobody wrote" : "which nobody wrote",
                          o.thread, cta_.place(o.pc)),
          .other = cta_.party(o.pc, o.thread, cta_.at)};
}

void UndefinedChecks::note(const WarpAccess& a, uint32_t lanes, uint8_t* state, size_t* left,
                           const Origin& origin) {
  Undefined& u = undefined();
  const Warp& w = a.warp;
  const Undefined::Step step{.registers = w.registers,
                             .in = a.in,
                             .pc = w.current.pc,
                             .warp = w.index,
                             .mask = a.mask,
                             .current = w.current.mask};
  if (a.in.op != Op::load) {
    if (!left || *left || u.following())
      UndefinedMemory::store(step, u.registers(), state, a.sum, a.at, left);
    return;
  }
  if (u.following()) u.clear(step);
  const bool any = !left || *left;
  if (any && UndefinedMemory::suspicious(state, lanes, a.sum, a.at, uint32_t(a.bytes())))
    u.load(step, state, a.at, origin);
}

bool UndefinedChecks::stored(const WarpAccess& a, const Buffer& b) {
  const Undefined& u = undefined();
  if (a.in.op != Op::store || !u.following() || b.content == Content::scratch) return true;
  const Warp& w = a.warp;
  for (int k = 0; k < a.in.vec; ++k) {
    const uint32_t bad = u.registers().mask_of(w.index, a.in.v[k]) & a.mask;
    if (!bad) continue;
    const int lane = std::countr_zero(bad);
    const Origin origin = u.registers().origin_of(w.index, a.in.v[k]);
    // If a warp reads too early, it also races with the warp that writes later. The race is the
    // more useful finding.
    const bool wait = origin.space == Space::shared && cta_.races && cta_.warps.size() > 1;
    if (wait && cta_.pending) return true;
    const uint64_t at = a.at[lane] + uint64_t(k) * a.in.size;
    Finding found = finding(
        origin, fmt::format("the value stored to {} at offset {} depends on", b.name, at - b.base));
    found.address = at, found.buffer = b.name;
    if (!wait) {
      cta_.report(w, lane, std::move(found));
      return false;
    }
    cta_.pending = cta_.located(w, lane, std::move(found));
    return true;
  }
  return true;
}

}  // namespace cutegen::ptx
