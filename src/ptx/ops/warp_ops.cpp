// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/warp_ops.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cutegen::ptx {

std::optional<ReduceOp> reduce_op(std::string_view op, std::string_view type) {
  const bool is_signed = type == "s32";
  if (type != "s32" && type != "u32" && type != "b32") return std::nullopt;
  if (op == "add") return ReduceOp::add;
  if (op == "min") return is_signed ? ReduceOp::min_s : ReduceOp::min_u;
  if (op == "max") return is_signed ? ReduceOp::max_s : ReduceOp::max_u;
  if (op == "and") return ReduceOp::land;
  if (op == "or") return ReduceOp::lor;
  if (op == "xor") return ReduceOp::lxor;
  return std::nullopt;
}

void vote(std::byte* r, const Inst& in, uint32_t mask) {
  uint32_t yes = predicate_at(r, in.a) ^ (in.imm ? ~0u : 0u);
  yes &= mask;
  if (in.sub == kVoteBallot) {
    uint32_t* d = words_at(r, in.d);
    for (int lane = 0; lane < 32; ++lane) {
      if (mask >> lane & 1) d[lane] = yes;
    }
    return;
  }
  const bool result = in.sub == kVoteAll   ? yes == mask
                      : in.sub == kVoteAny ? yes != 0
                                           : yes == 0 || yes == mask;
  set_predicate(r, in.d, result ? ~0u : 0u, mask);
}

void warp_reduce(std::byte* r, const Inst& in, uint32_t mask) {
  const uint32_t* a = words_at(r, in.a);
  uint32_t total = a[std::countr_zero(mask)];
  for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
    const uint32_t x = a[std::countr_zero(rest)];
    switch (ReduceOp(in.sub)) {
      case ReduceOp::add:
        total += x;
        break;
      case ReduceOp::min_s:
        total = uint32_t(std::min(int32_t(total), int32_t(x)));
        break;
      case ReduceOp::max_s:
        total = uint32_t(std::max(int32_t(total), int32_t(x)));
        break;
      case ReduceOp::min_u:
        total = std::min(total, x);
        break;
      case ReduceOp::max_u:
        total = std::max(total, x);
        break;
      case ReduceOp::land:
        total &= x;
        break;
      case ReduceOp::lor:
        total |= x;
        break;
      case ReduceOp::lxor:
        total ^= x;
        break;
    }
  }
  uint32_t* d = words_at(r, in.d);
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) d[lane] = total;
  }
}

void match(std::byte* r, const Inst& in, uint32_t mask) {
  auto value = [&](int lane) {
    uint64_t v = 0;
    std::memcpy(&v, r + in.a + lane * in.reg_size, in.reg_size);
    return v;
  };
  uint64_t values[32];
  for (int lane = 0; lane < 32; ++lane) values[lane] = value(lane);
  bool all = true;
  uint32_t* d = words_at(r, in.d);
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    uint32_t same = 0;
    for (int other = 0; other < 32; ++other) {
      if ((mask >> other & 1) && values[other] == values[lane]) same |= 1u << other;
    }
    all = all && same == mask;
    if (in.sub == 0) d[lane] = same;
  }
  if (in.sub == 0) return;
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) d[lane] = all ? mask : 0;
  }
  if (in.e >= 0) set_predicate(r, in.e, all ? ~0u : 0u, mask);
}

void elect(std::byte* r, const Inst& in, uint32_t mask) {
  const uint32_t leader = uint32_t(std::countr_zero(mask));
  uint32_t* d = words_at(r, in.d);
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) d[lane] = leader;
  }
  set_predicate(r, in.e, 1u << leader, mask);
}

}  // namespace cutegen::ptx
