// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/atomic.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <utility>

#include "ptx/ops/formats.h"

namespace cutegen::ptx {
namespace {

template <class T>
T integer_result(AtomicOp op, T old, T b, T c) {
  switch (op) {
    case AtomicOp::add:
      return T(uint64_t(old) + uint64_t(b));
    case AtomicOp::min:
      return std::min(old, b);
    case AtomicOp::max:
      return std::max(old, b);
    case AtomicOp::inc:
      return old >= b ? T(0) : T(old + 1);
    case AtomicOp::dec:
      return old == 0 || old > b ? b : T(old - 1);
    case AtomicOp::land:
      return old & b;
    case AtomicOp::lor:
      return old | b;
    case AtomicOp::lxor:
      return old ^ b;
    case AtomicOp::exch:
      return b;
    case AtomicOp::cas:
      return old == b ? c : old;
  }
  return old;
}

template <class U, class F>
uint64_t update(std::byte* place, F next) {
  std::atomic_ref<U> cell(*reinterpret_cast<U*>(place));
  U old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(old, next(old))) {
  }
  return uint64_t(old);
}

template <class T, class U>
uint64_t integers(AtomicOp op, std::byte* place, uint64_t b, uint64_t c) {
  return update<U>(place, [&](U old) { return U(integer_result<T>(op, T(old), T(b), T(c))); });
}

template <class T>
T float_result(AtomicOp op, T old, T b) {
  if (op == AtomicOp::add) return old + b;
  if (old != old) return b;
  if (b != b) return old;
  return op == AtomicOp::min ? std::min(old, b) : std::max(old, b);
}

constexpr uint16_t kNaN16 = 0x7fff;

template <class Format>
uint16_t add16(uint16_t old, uint16_t b) {
  return Format::store(Format::load(old) + Format::load(b));
}
// min and max: a number wins over a NaN, and -0 is below +0.
template <class Format>
uint16_t extreme16(AtomicOp op, uint16_t old, uint16_t b) {
  const float x = Format::load(old), y = Format::load(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? (std::isnan(y) ? kNaN16 : b) : old;
  const bool below = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return below == (op == AtomicOp::min) ? old : b;
}
template <class Format>
uint64_t halves(AtomicOp op, std::byte* place, uint64_t b, bool pair) {
  auto one = [op](uint16_t old, uint16_t value) {
    return op == AtomicOp::add ? add16<Format>(old, value) : extreme16<Format>(op, old, value);
  };
  if (!pair) return update<uint16_t>(place, [&](uint16_t old) { return one(old, uint16_t(b)); });
  return update<uint32_t>(place, [&](uint32_t old) {
    return uint32_t(one(uint16_t(old >> 16), uint16_t(b >> 16))) << 16 |
           one(uint16_t(old), uint16_t(b));
  });
}

}  // namespace

std::optional<AtomicOp> atomic_op(std::string_view name) {
  static constexpr std::pair<std::string_view, AtomicOp> names[] = {
      {"add", AtomicOp::add}, {"min", AtomicOp::min},  {"max", AtomicOp::max},
      {"inc", AtomicOp::inc}, {"dec", AtomicOp::dec},  {"and", AtomicOp::land},
      {"or", AtomicOp::lor},  {"xor", AtomicOp::lxor}, {"exch", AtomicOp::exch},
      {"cas", AtomicOp::cas}};
  for (auto [n, op] : names) {
    if (n == name) return op;
  }
  return std::nullopt;
}

std::optional<AtomicType> atomic_type(std::string_view name) {
  static constexpr std::pair<std::string_view, AtomicType> names[] = {
      {"u32", AtomicType::u32},      {"s32", AtomicType::s32},   {"b32", AtomicType::b32},
      {"f32", AtomicType::f32},      {"u64", AtomicType::u64},   {"s64", AtomicType::s64},
      {"b64", AtomicType::b64},      {"f64", AtomicType::f64},   {"b16", AtomicType::b16},
      {"f16", AtomicType::f16},      {"bf16", AtomicType::bf16}, {"f16x2", AtomicType::f16x2},
      {"bf16x2", AtomicType::bf16x2}};
  for (auto [n, type] : names) {
    if (n == name) return type;
  }
  return std::nullopt;
}

bool atomic_known(AtomicOp op, AtomicType type) {
  using T = AtomicType;
  const bool bits = op >= AtomicOp::land;
  switch (type) {
    case T::b32:
    case T::b64:
      return bits;
    case T::b16:
      return op == AtomicOp::cas;
    case T::f32:
    case T::f64:
    case T::f32_flushed:
      return op == AtomicOp::add;
    case T::f16:
    case T::bf16:
    case T::f16x2:
    case T::bf16x2:
      return op == AtomicOp::add;
    default:
      return true;
  }
}

bool atomic_vector_known(AtomicOp op, AtomicType type, int elements) {
  using T = AtomicType;
  const bool half = type == T::f16 || type == T::bf16, pair = type == T::f16x2 || type == T::bf16x2;
  if (!half && !pair) return type == T::f32 && op == AtomicOp::add && elements <= 4;
  const bool known = op == AtomicOp::add || op == AtomicOp::min || op == AtomicOp::max;
  return known && elements <= (half ? 8 : 4);
}

uint64_t atomic_apply(AtomicOp op, AtomicType type, std::byte* place, uint64_t b, uint64_t c) {
  using T = AtomicType;
  switch (type) {
    case T::u32:
    case T::b32:
      return integers<uint32_t, uint32_t>(op, place, b, c);
    case T::s32:
      return integers<int32_t, uint32_t>(op, place, b, c);
    case T::u64:
    case T::b64:
      return integers<uint64_t, uint64_t>(op, place, b, c);
    case T::s64:
      return integers<int64_t, uint64_t>(op, place, b, c);
    case T::b16:
      return integers<uint16_t, uint16_t>(op, place, b, c);
    case T::f32:
      return update<uint32_t>(place, [&](uint32_t old) {
        return std::bit_cast<uint32_t>(
            float_result(op, std::bit_cast<float>(old), std::bit_cast<float>(uint32_t(b))));
      });
    case T::f32_flushed:
      return update<uint32_t>(place, [&](uint32_t old) {
        const float sum =
            flush(std::bit_cast<float>(old)) + flush(std::bit_cast<float>(uint32_t(b)));
        return std::bit_cast<uint32_t>(flush(sum));
      });
    case T::f64:
      return update<uint64_t>(place, [&](uint64_t old) {
        return std::bit_cast<uint64_t>(
            float_result(op, std::bit_cast<double>(old), std::bit_cast<double>(b)));
      });
    case T::f16:
    case T::f16x2:
      return halves<F16>(op, place, b, type == T::f16x2);
    case T::bf16:
    case T::bf16x2:
      return halves<BF16>(op, place, b, type == T::bf16x2);
  }
  return 0;
}

}  // namespace cutegen::ptx
