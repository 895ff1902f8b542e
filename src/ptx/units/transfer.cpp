// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/transfer.h"

#include <bit>
#include <cstring>

namespace cutegen::ptx {
namespace {

template <class M, class R>
void load_lanes(std::byte* to, const std::byte* zero, const uint64_t* at, uint32_t mask) {
  R* out = reinterpret_cast<R*>(to);
  if (mask == ~0u) {
    for (int lane = 0; lane < 32; ++lane) {
      M m;
      std::memcpy(&m, zero + at[lane], sizeof m);
      out[lane] = R(m);
    }
    return;
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    M m;
    std::memcpy(&m, zero + at[lane], sizeof m);
    out[lane] = R(m);
  }
}
template <class M>
void store_lanes(const std::byte* from, int step, std::byte* zero, const uint64_t* at,
                 uint32_t mask) {
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(zero + at[lane], from + lane * step, sizeof(M));
  }
}

template <class R>
void load_any(const Inst& in, std::byte* to, const std::byte* zero, const uint64_t* at,
              uint32_t mask) {
  switch (in.size * 2 + in.sign) {
    case 2:
      return load_lanes<uint8_t, R>(to, zero, at, mask);
    case 3:
      return load_lanes<int8_t, R>(to, zero, at, mask);
    case 4:
      return load_lanes<uint16_t, R>(to, zero, at, mask);
    case 5:
      return load_lanes<int16_t, R>(to, zero, at, mask);
    case 8:
      return load_lanes<uint32_t, R>(to, zero, at, mask);
    case 9:
      return load_lanes<int32_t, R>(to, zero, at, mask);
    default:
      return load_lanes<uint64_t, R>(to, zero, at, mask);
  }
}

// Loads consecutive vectors of V elements: element k of lane i is at i * V + k.
template <class T, int V>
void deinterleave(std::byte* registers, const int32_t* v, const std::byte* from) {
  const T* in = reinterpret_cast<const T*>(from);
  for (int k = 0; k < V; ++k) {
    if (v[k] < 0) continue;
    T* out = reinterpret_cast<T*>(registers + v[k]);
    for (int lane = 0; lane < 32; ++lane) out[lane] = in[lane * V + k];
  }
}
template <class T, int V>
void interleave(const std::byte* registers, const int32_t* v, std::byte* to) {
  T* out = reinterpret_cast<T*>(to);
  for (int k = 0; k < V; ++k) {
    const T* in = reinterpret_cast<const T*>(registers + v[k]);
    for (int lane = 0; lane < 32; ++lane) out[lane * V + k] = in[lane];
  }
}
bool vector_block(const Inst& in, std::byte* r, std::byte* memory) {
  const bool load = in.op == Op::load;
  auto go = [&]<class T, int V>() {
    if (load)
      deinterleave<T, V>(r, in.v, memory);
    else
      interleave<T, V>(r, in.v, memory);
    return true;
  };
  switch (in.size * 8 + in.vec) {
    case 34:
      return go.operator()<uint32_t, 2>();
    case 36:
      return go.operator()<uint32_t, 4>();
    case 66:
      return go.operator()<uint64_t, 2>();
    case 18:
      return go.operator()<uint16_t, 2>();
    case 20:
      return go.operator()<uint16_t, 4>();
    default:
      return false;
  }
}

// Moves whole blocks if the lanes are consecutive and the elements fill their registers. False:
// they are not.
bool transfer_block(const WarpAccess& a, std::byte* memory) {
  const Inst& in = a.in;
  if (in.vec > 1) return vector_block(in, a.warp.registers, memory);
  if (in.v[0] < 0) return false;
  std::byte* r = a.warp.registers + in.v[0];
  const size_t n = size_t(in.size) * 32;
  if (in.op == Op::load)
    std::memcpy(r, memory, n);
  else
    std::memcpy(memory, r, n);
  return true;
}

void load(const WarpAccess& a, std::byte* r, const std::byte* base) {
  switch (a.in.reg_size) {
    case 2:
      return load_any<uint16_t>(a.in, r, base, a.at, a.mask);
    case 4:
      return load_any<uint32_t>(a.in, r, base, a.at, a.mask);
    default:
      return load_any<uint64_t>(a.in, r, base, a.at, a.mask);
  }
}

void store(const WarpAccess& a, const std::byte* r, std::byte* base) {
  switch (a.in.size) {
    case 1:
      return store_lanes<uint8_t>(r, a.in.reg_size, base, a.at, a.mask);
    case 2:
      return store_lanes<uint16_t>(r, a.in.reg_size, base, a.at, a.mask);
    case 4:
      return store_lanes<uint32_t>(r, a.in.reg_size, base, a.at, a.mask);
    default:
      return store_lanes<uint64_t>(r, a.in.reg_size, base, a.at, a.mask);
  }
}

}  // namespace

void transfer(const WarpAccess& a, std::byte* zero) {
  const Inst& in = a.in;
  if (a.sum.contiguous && in.size == in.reg_size && transfer_block(a, zero + a.sum.low)) return;
  for (int k = 0; k < in.vec; ++k) {
    if (in.v[k] < 0) continue;
    std::byte* r = a.warp.registers + in.v[k];
    std::byte* base = zero + k * in.size;
    if (in.op == Op::load)
      load(a, r, base);
    else
      store(a, r, base);
  }
}

}  // namespace cutegen::ptx
