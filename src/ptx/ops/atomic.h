// SPDX-License-Identifier: Apache-2.0
// Atomic operations on host memory that several host threads may access.
//
// Contract: atomic_apply() returns the old value. Operands and results are bit patterns. `place`
// must be aligned to the size of the type. The memory order is at least as strong as the order that
// the kernel requests.
//
// Example: uint64_t old = atomic_apply(AtomicOp::add, AtomicType::u32, place, 1, 0);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cutegen::ptx {

enum class AtomicOp : uint8_t { add, min, max, inc, dec, land, lor, lxor, exch, cas };
enum class AtomicType : uint8_t {
  u32,
  s32,
  b32,
  f32,
  f32_flushed,  // f32 on global memory: add flushes subnormals
  u64,
  s64,
  b64,
  f64,
  b16,
  f16,
  bf16,
  f16x2,
  bf16x2
};

std::optional<AtomicOp> atomic_op(std::string_view name);
std::optional<AtomicType> atomic_type(std::string_view name);
bool atomic_known(AtomicOp op, AtomicType type);
// Does what atomic_known() does, but for vectors of 2, 4 or 8 elements.
bool atomic_vector_known(AtomicOp op, AtomicType type, int elements);
uint64_t atomic_apply(AtomicOp op, AtomicType type, std::byte* place, uint64_t b, uint64_t c);

}  // namespace cutegen::ptx
