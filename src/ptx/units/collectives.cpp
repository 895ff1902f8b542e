// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/collectives.h"

#include <fmt/format.h>

#include <bit>

#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {
namespace {

void run(Warp& w, const Inst& in, uint32_t mask) {
  switch (in.op) {
    case Op::shuffle:
      return in.masked(w.registers, in, mask);
    case Op::vote:
      return vote(w.registers, in, mask);
    case Op::warp_reduce:
      return warp_reduce(w.registers, in, mask);
    case Op::match:
      return match(w.registers, in, mask);
    case Op::elect:
      return elect(w.registers, in, mask);
    default:
      return;
  }
}

}  // namespace

Meet Collectives::execute(Warp& w, const Inst& in, uint32_t mask) {
  w.split_off(mask);
  const uint32_t* masks = words_at(w.registers, in.v[0]);
  const uint32_t members = masks[std::countr_zero(mask)];
  uint32_t differ = 0,
           group = ~0u;  // without a branch, because nearly always all lanes have one mask
  for (int lane = 0; lane < 32; ++lane) differ |= masks[lane] ^ members;
  for (int lane = 0; differ && lane < 32; ++lane)
    group &= ~(uint32_t(masks[lane] != members) << lane);
  if (const uint32_t rest = mask & ~group) {  // lanes with another member mask come later
    w.add({.pc = w.current.pc, .mask = rest, .blocked = false});
    w.current.mask = mask = mask & group;
  }
  if (const uint32_t out = mask & ~members) {
    cta_.report(w, std::countr_zero(out),
                {.kind = "divergent_collective",
                 .message = fmt::format("lanes {:#010x} are here, but the member mask {:#010x} "
                                        "leaves {:#010x} out",
                                        mask, members, out)});
    return Meet::failed;
  }
  const Meet m = scheduler_.meet(w, members, mask, "divergent_collective");
  if (m == Meet::here) run(w, in, mask);
  return m;
}

}  // namespace cutegen::ptx
