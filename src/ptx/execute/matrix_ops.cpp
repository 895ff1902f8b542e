// SPDX-License-Identifier: Apache-2.0
// Matrix instructions and asynchronous copies of a warp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "ptx/execute/cta.h"
#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {

// mma, movmatrix, ldmatrix, stmatrix: all 32 lanes, together.
Cta::Meet Cta::matrix(Warp& w, const Inst& in, uint32_t mask) {
  split_off(w, mask);
  const Meet m = meet(w, ~0u, mask, "divergent_collective");
  if (m != Meet::here) return m;
  if (mask != ~0u) {
    report(w, "divergent_collective",
           fmt::format("a matrix instruction needs 32 lanes, lanes {:#010x} are here", mask),
           std::countr_zero(mask));
    return Meet::failed;
  }
  if (in.op == Op::matrix) {
    in.masked(w.registers, in, mask);
    return Meet::here;
  }
  const bool load = in.op == Op::load_matrix;
  if (!load) in.masked(w.registers, in, mask);
  Inst rows = in;  // 16 bytes for each of the first lanes
  rows.op = load ? Op::load : Op::store;
  rows.vec = 4;
  const uint32_t givers = in.vec == 4 ? ~0u : (1u << 8 * in.vec) - 1;
  if (!access(w, rows, givers)) return Meet::failed;
  if (load) in.masked(w.registers, in, mask);
  return Meet::here;
}

// Inst::list of a copy: slot, offset and width of the shared address, and a free register.
bool Cta::async_copy(Warp& w, const Inst& in, uint32_t mask) {
  AsyncCopies& queue = copies_[size_t(w.index)];
  if (in_flight_.empty()) in_flight_.resize(shared_.size() / 4 + 1);
  if (queue.full() && !deliver(w, queue.take_oldest())) return false;
  AsyncCopy copy;
  copy.pc = w.current.pc, copy.mask = mask;
  uint64_t at[32];
  Inst to;
  to.op = Op::store, to.size = in.size, to.vec = in.vec;
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  const AddressSummary s =
      forms_.addresses(w.registers + in.list[0], in.list[2] != 0, in.list[1], bytes, mask, at);
  const bool aligned = (s.bits & (bytes - 1)) == 0 || (s.contiguous && s.low % bytes == 0);
  if (!aligned || s.high >= shared_.size() || shared_.size() - s.high < bytes)
    return fault(w, to, mask, Space::shared, at);
  if (!fetch(w, in, mask)) return false;
  for (size_t k = 0; k < in.vec; ++k)
    std::memcpy(copy.words[k].data(), w.registers + in.v[k], sizeof copy.words[k]);
  for (uint32_t m = mask; m; m &= m - 1) {
    const size_t lane = size_t(std::countr_zero(m));
    copy.at[lane] = uint32_t(at[lane]);
    for (size_t k = 0; k < in.vec; ++k) ++in_flight_[at[lane] / 4 + k];
  }
  copies_in_flight_ += uint64_t(std::popcount(mask));
  queue.issue(copy);
  return true;
}

// Reads the source of a copy into the scratch registers; bytes beyond src-size are zero.
bool Cta::fetch(Warp& w, const Inst& in, uint32_t mask) {
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
        return report(w, "bad_copy",
                      fmt::format("src-size {} of a copy of {} bytes", sizes[lane], bytes), lane);
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
  if (whole && !access(w, from, whole)) return false;
  from.size = 1, from.vec = 1, from.v[0] = in.list[3];
  const uint32_t* byte = words_at(w.registers, in.list[3]);
  for (uint32_t i = 0; part && i < bytes; ++i, ++from.imm) {  // rare: a tail of some bytes
    uint32_t lanes = 0;
    for (uint32_t m = part; m; m &= m - 1) {
      if (sizes[std::countr_zero(m)] > i) lanes |= m & -m;
    }
    if (lanes && !access(w, from, lanes)) return false;
    uint32_t* word = words_at(w.registers, in.v[i / 4]);
    for (uint32_t m = lanes; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      word[lane] |= byte[lane] << 8 * (i % 4);
    }
  }
  return true;
}

bool Cta::async_wait(Warp& w, const Inst& in, uint32_t mask) {
  for (const AsyncCopy& c : copies_[size_t(w.index)].take(mask, in.imm)) {
    if (!deliver(w, c)) return false;
  }
  return true;
}

// The bytes of a copy arrive: a store by the lanes that asked for them.
bool Cta::deliver(Warp& w, const AsyncCopy& copy) {
  const Inst& in = job_.program.code[size_t(copy.pc)];
  for (uint32_t m = copy.mask; m; m &= m - 1) {
    for (size_t k = 0; k < in.vec; ++k) --in_flight_[copy.at[size_t(std::countr_zero(m))] / 4 + k];
  }
  copies_in_flight_ -= uint64_t(std::popcount(copy.mask));
  Inst to = in;
  to.op = Op::store, to.kind = Kind::store_shared, to.space = Space::shared;
  for (size_t k = 0; k < in.vec; ++k)
    std::memcpy(w.registers + in.v[k], copy.words[k].data(), sizeof copy.words[k]);
  alignas(64) uint64_t at[32];
  const AddressSummary s = forms_.addresses(reinterpret_cast<const std::byte*>(copy.at.data()),
                                            false, 0, uint64_t(in.size) * in.vec, copy.mask, at);
  const int32_t here = std::exchange(w.current.pc, copy.pc);
  delivering_ = true;
  const bool ok = access_at(w, to, copy.mask, Space::shared, s, at);
  delivering_ = false;
  if (ok) w.current.pc = here;
  return ok;
}

// A lane that touches bytes which a copy is still to write.
bool Cta::copy_pending(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                       const uint64_t* at) {
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  auto touched = [&](uint64_t from, uint64_t to) {
    uint32_t any = 0;
    for (uint64_t word = from / 4; word <= (to - 1) / 4; ++word) any |= in_flight_[word];
    return any != 0;
  };
  if (s.contiguous || s.uniform) {
    if (!touched(s.low, s.high + bytes)) return false;
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (!touched(at[lane], at[lane] + bytes)) continue;
    finding_.address = at[lane];
    finding_.buffer = "shared memory";
    report(w, "async_copy_pending",
           fmt::format("{} of {} bytes at offset {} of shared memory, which cp.async ({}) is still "
                       "to write: wait for its group first",
                       in.op == Op::load    ? "read"
                       : in.op == Op::store ? "write"
                                            : "atomic",
                       bytes, at[lane], pending_place(at[lane], bytes)),
           lane);
    return true;
  }
  return false;
}

// The line of a copy that is to write one of these bytes.
std::string Cta::pending_place(uint64_t at, uint64_t bytes) const {
  for (const AsyncCopies& queue : copies_) {
    for (const AsyncCopy& c : queue.all()) {
      const uint64_t size = 4u * job_.program.code[size_t(c.pc)].vec;
      for (uint32_t m = c.mask; m; m &= m - 1) {
        const uint64_t begin = c.at[size_t(std::countr_zero(m))];
        if (begin < at + bytes && at < begin + size)
          return fmt::format("ptx:{}", job_.program.lines[size_t(c.pc)].line);
      }
    }
  }
  return "of another warp";
}

void Cta::forget_copies() {
  if (copies_in_flight_) std::fill(in_flight_.begin(), in_flight_.end(), 0u);
  copies_in_flight_ = 0;
  for (AsyncCopies& queue : copies_) queue.clear();
}

}  // namespace cutegen::ptx
