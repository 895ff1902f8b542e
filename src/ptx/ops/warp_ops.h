// SPDX-License-Identifier: Apache-2.0
// Executes operations across the lanes of one warp: vote, redux, match, elect.
//
// Contract: all lanes in `mask` must be at the instruction `in`. `registers` is the register file
// of the warp.
//
// Example: vote(registers, in, mask);
#pragma once

#include <optional>
#include <string_view>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {

inline constexpr uint8_t kVoteAll = 0, kVoteAny = 1, kVoteUniform = 2, kVoteBallot = 3;
inline constexpr uint8_t kBarrierSync = 0, kBarrierArrive = 1, kBarrierCount = 2, kBarrierAnd = 3,
                         kBarrierOr = 4;
enum class ReduceOp : uint8_t { add, min_s, min_u, max_s, max_u, land, lor, lxor };

std::optional<ReduceOp> reduce_op(std::string_view op, std::string_view type);

void vote(std::byte* registers, const Inst& in, uint32_t mask);
void warp_reduce(std::byte* registers, const Inst& in, uint32_t mask);
void match(std::byte* registers, const Inst& in, uint32_t mask);
void elect(std::byte* registers, const Inst& in, uint32_t mask);

inline uint32_t& predicate_at(std::byte* r, int32_t at) {
  return *reinterpret_cast<uint32_t*>(r + at);
}
inline uint32_t* words_at(std::byte* r, int32_t at) {
  return reinterpret_cast<uint32_t*>(r + at);
}
inline void set_predicate(std::byte* r, int32_t at, uint32_t value, uint32_t mask) {
  predicate_at(r, at) = (predicate_at(r, at) & ~mask) | (value & mask);
}

}  // namespace cutegen::ptx
