// SPDX-License-Identifier: Apache-2.0
// Computes one time step of a recurrent layer: products of weights and the last state, and the next
// state of a cell.
//
// Contract: `Lanes` threads, a power of two up to 32, share the dot products of one state element;
// all threads of the warp must call the functions of this header together. The state of each
// sequence is a row of `pitch` floats in shared memory; `pitch` is the size of the state rounded up
// to a multiple of 4, and the elements beyond the state are zero.
// - add_products takes weights whose rows also have `pitch` elements and begin at multiples of 4
//   elements. For all other weights, call add_products_of_rows.
// - combine_lanes adds the lanes' partial sums. After combine_lanes, lane b holds the sums of
//   sequence b.
// - store_in_cluster writes to the shared memory of CTA `rank` of the cluster.
// - load_past_l1 bypasses L1, so that the caller sees values that another SM has written.
//
// Example: add_products<8>(sums, w, n * pitch, state, pitch, lane);
//          combine_lanes<8>(sums, own, lane); float h = LstmCell::next(x, own, h, cell);
#pragma once

#include <cutegen/math.cuh>
#include <cutegen/vec.cuh>

namespace cutegen {

// Multiplies this lane's part of the states of Rows sequences by Gates rows of weights, and adds
// the products to `sums`.
template <int Lanes, class T, int Gates, int Rows>
CUTE_DEVICE void add_products(float (&sums)[Gates][Rows], T const* weights, int64_t gate_pitch,
                              float const* state, int pitch, int lane) {
#pragma unroll 2
  for (int k = 4 * lane; k < pitch; k += 4 * Lanes) {
    float4 s[Rows];
    CUTE_UNROLL
    for (int b = 0; b < Rows; ++b) s[b] = *reinterpret_cast<float4 const*>(state + b * pitch + k);
    CUTE_UNROLL
    for (int g = 0; g < Gates; ++g) {
      const auto pack = *reinterpret_cast<Pack<T, 4> const*>(weights + g * gate_pitch + k);
      float w[4];
      convert_all(pack.element, w);
      CUTE_UNROLL
      for (int b = 0; b < Rows; ++b) {
        sums[g][b] = fmaf(w[0], s[b].x, sums[g][b]);
        sums[g][b] = fmaf(w[1], s[b].y, sums[g][b]);
        sums[g][b] = fmaf(w[2], s[b].z, sums[g][b]);
        sums[g][b] = fmaf(w[3], s[b].w, sums[g][b]);
      }
    }
  }
}
template <int Lanes, class T, int Gates, int Rows>
CUTE_DEVICE void add_products_of_rows(float (&sums)[Gates][Rows], T const* weights,
                                      int64_t gate_pitch, int states, float const* state, int pitch,
                                      int lane) {
  for (int k = lane; k < states; k += Lanes) {
    CUTE_UNROLL
    for (int g = 0; g < Gates; ++g) {
      const float w = to_float(weights[g * gate_pitch + k]);
      CUTE_UNROLL
      for (int b = 0; b < Rows; ++b) sums[g][b] = fmaf(w, state[b * pitch + k], sums[g][b]);
    }
  }
}

template <int Lanes, int Gates, int Rows>
CUTE_DEVICE void combine_lanes(float (&sums)[Gates][Rows], float (&own)[Gates], int lane) {
  static_assert(Rows <= Lanes);
  CUTE_UNROLL
  for (int g = 0; g < Gates; ++g) {
    own[g] = 0.0f;
    CUTE_UNROLL
    for (int b = 0; b < Rows; ++b) {
      CUTE_UNROLL
      for (int other = Lanes / 2; other > 0; other /= 2)
        sums[g][b] += __shfl_xor_sync(0xffffffffu, sums[g][b], other);
      if (b == lane) own[g] = sums[g][b];
    }
  }
}

// Each cell class computes the next state from x (the products of the input and its weights) and
// `sums` (the products of the last state and its weights). The gates of a cell have PyTorch's
// order: input, forget, cell, output for LSTM, and reset, update, new for GRU.
struct LstmCell {
  static constexpr int kGates = 4;
  CUTE_DEVICE static float next(float const (&x)[4], float const (&sums)[4], float, float& cell) {
    const float in = sigmoid(x[0] + sums[0]), forget = sigmoid(x[1] + sums[1]);
    const float fresh = tanhf(x[2] + sums[2]), out = sigmoid(x[3] + sums[3]);
    cell = fmaf(forget, cell, in * fresh);
    return out * tanhf(cell);
  }
};
struct GruCell {
  static constexpr int kGates = 3;
  CUTE_DEVICE static float next(float const (&x)[3], float const (&sums)[3], float last, float&) {
    const float reset = sigmoid(x[0] + sums[0]), update = sigmoid(x[1] + sums[1]);
    const float fresh = tanhf(fmaf(reset, sums[2], x[2]));
    return fmaf(update, last - fresh, fresh);
  }
};
struct TanhCell {
  static constexpr int kGates = 1;
  CUTE_DEVICE static float next(float const (&x)[1], float const (&sums)[1], float, float&) {
    return tanhf(x[0] + sums[0]);
  }
};
struct ReluCell {
  static constexpr int kGates = 1;
  CUTE_DEVICE static float next(float const (&x)[1], float const (&sums)[1], float, float&) {
    return relu(x[0] + sums[0]);
  }
};

template <class T>
CUTE_DEVICE float load_past_l1(T const* from) {
  if constexpr (sizeof(T) == 4) {
    return __ldcg(from);
  } else {
    const unsigned short word = __ldcg(reinterpret_cast<unsigned short const*>(from));
    T value;
    memcpy(&value, &word, sizeof(value));
    return to_float(value);
  }
}
template <class T>
CUTE_DEVICE float4 load_four_past_l1(T const* from) {
  if constexpr (sizeof(T) == 4) {
    return __ldcg(reinterpret_cast<float4 const*>(from));
  } else {
    const uint2 words = __ldcg(reinterpret_cast<uint2 const*>(from));
    Pack<T, 4> pack;
    float r[4];
    memcpy(&pack, &words, sizeof(pack));
    convert_all(pack.element, r);
    return {r[0], r[1], r[2], r[3]};
  }
}

CUTE_DEVICE void store_in_cluster(float* to, int rank, float value) {
  unsigned theirs;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(theirs)
               : "r"(unsigned(__cvta_generic_to_shared(to))), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(theirs), "f"(value) : "memory");
}

}  // namespace cutegen
