// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/async_unit.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "ptx/cta/faults.h"
#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {

// Inst::list of a copy: slot, offset and width of the shared address, then scratch registers.
bool AsyncUnit::issue(Warp& w, const Inst& in, uint32_t mask) {
  AsyncCopies& queue = cta_.copies.of(w.index);
  if (queue.full() && !deliver(w, queue.take_oldest())) return false;
  uint64_t at[32];
  Inst to;
  to.op = Op::store, to.size = in.size, to.vec = in.vec;
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  const WarpAccess a{
      .warp = w,
      .in = to,
      .mask = mask,
      .sum = addresses_(w.registers + in.list[0], in.list[2] != 0, in.list[1], bytes, mask, at),
      .at = at};
  const bool aligned =
      (a.sum.bits & (bytes - 1)) == 0 || (a.sum.contiguous && a.sum.low % bytes == 0);
  const uint64_t size = cta_.shared.size();
  if (!aligned || a.sum.high >= size || size - a.sum.high < bytes) {
    report_fault(cta_, a, Space::shared);
    return false;
  }
  if (!fetch(w, in, mask)) return false;
  AsyncCopy copy;
  copy.pc = w.current.pc, copy.mask = mask, copy.vec = in.vec;
  for (size_t k = 0; k < in.vec; ++k)
    std::memcpy(copy.words[k].data(), w.registers + in.v[k], sizeof copy.words[k]);
  for (uint32_t m = mask; m; m &= m - 1) {
    const size_t lane = size_t(std::countr_zero(m));
    copy.at[lane] = uint32_t(at[lane]);
  }
  cta_.copies.issue(w.index, copy);
  return true;
}

// Reads the source of a copy into the scratch registers; bytes beyond src-size are zero.
bool AsyncUnit::fetch(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t bytes = uint32_t(in.size) * in.vec;
  uint32_t whole = mask, part = 0;
  if (in.e >= 0) {
    const uint32_t ignored = predicate_at(w.registers, in.e) ^ (in.sub ? ~0u : 0u);
    whole &= ~ignored;
  }
  uint32_t sizes[32] = {};
  if (in.c >= 0) {
    std::memcpy(sizes, w.registers + in.c, sizeof sizes);
    for (uint32_t m = whole; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (sizes[lane] > bytes) {
        cta_.report(
            w, lane,
            {.kind = "bad_copy",
             .message = fmt::format("src-size {} of a copy of {} bytes", sizes[lane], bytes)});
        return false;
      }
      if (sizes[lane] == bytes) continue;
      whole &= ~(1u << lane);
      if (sizes[lane] > 0) part |= 1u << lane;
    }
  }
  if (whole != ~0u) {
    for (size_t k = 0; k < in.vec; ++k) std::memset(w.registers + in.v[k], 0, 128);
  }
  Inst from = in;
  from.op = Op::load;
  if (whole && !memory_.access(w, from, whole)) return false;
  return !part || fetch_part(w, in, part, sizes);
}

// For lanes that read only some bytes of a copy: one load per byte.
bool AsyncUnit::fetch_part(Warp& w, const Inst& in, uint32_t lanes, const uint32_t* sizes) {
  const uint32_t bytes = uint32_t(in.size) * in.vec;
  Inst from = in;
  from.op = Op::load, from.size = 1, from.vec = 1, from.v[0] = in.list[3];
  const uint32_t* byte = words_at(w.registers, in.list[3]);
  for (uint32_t i = 0; i < bytes; ++i, ++from.imm) {
    uint32_t some = 0;
    for (uint32_t m = lanes; m; m &= m - 1) {
      if (sizes[std::countr_zero(m)] > i) some |= m & -m;
    }
    if (some && !memory_.access(w, from, some)) return false;
    uint32_t* word = words_at(w.registers, in.v[i / 4]);
    for (uint32_t m = some; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      word[lane] |= byte[lane] << 8 * (i % 4);
    }
  }
  return true;
}

bool AsyncUnit::wait(Warp& w, const Inst& in, uint32_t mask) {
  for (const AsyncCopy& c : cta_.copies.of(w.index).take(mask, in.imm)) {
    if (!deliver(w, c)) return false;
  }
  return true;
}

bool AsyncUnit::complete(const AsyncArrival& arrival) {
  Warp& w = cta_.warps[size_t(arrival.warp)];
  for (const AsyncCopy& c : cta_.copies.of(arrival.warp).take_before(arrival.mask, arrival.before))
    if (!deliver(w, c)) return false;
  return true;
}

// Executes the copy's arrival as a store by the lanes that issued it, at the pc of the copy.
bool AsyncUnit::deliver(Warp& w, const AsyncCopy& copy) {
  cta_.copies.arrives(copy);
  const Inst& in = cta_.job.program.code[size_t(copy.pc)];
  Inst to = in;
  to.op = Op::store, to.kind = Kind::store_shared, to.space = Space::shared;
  for (size_t k = 0; k < in.vec; ++k)
    std::memcpy(w.registers + in.v[k], copy.words[k].data(), sizeof copy.words[k]);
  alignas(64) uint64_t at[32];
  const auto* lanes = reinterpret_cast<const std::byte*>(copy.at.data());
  const AddressSummary sum = addresses_(lanes, false, 0, uint64_t(in.size) * in.vec, copy.mask, at);
  const int32_t here = std::exchange(w.current.pc, copy.pc);
  if (!memory_.access_shared({.warp = w, .in = to, .mask = copy.mask, .sum = sum, .at = at}))
    return false;
  w.current.pc = here;
  return true;
}

}  // namespace cutegen::ptx
