// SPDX-License-Identifier: Apache-2.0
// Elements of a row in order: finds the first elements of a row one after another, and sorts a row
// in shared memory.
//
// Contract: a Key holds a float and its position in the row (below 2^32 - 1). A greater key comes
// first: the larger value (with Largest; else the smaller one), then the smaller position. NaN
// counts as the largest value, and both zeros are equal, as in PyTorch. A default Key comes behind
// all others. sort_keys() orders `padded` keys, a power of two, with all threads of a CTA.
//
// Example: Key k = key_of<true>(x, at); combine_row<256>(k, shared); float x = value_of<true>(k);
#pragma once

#include <cutegen/reduce.cuh>

namespace cutegen {

struct Key {
  unsigned place = 0, value = 0;  // two words, because keys move between lanes word by word
  __device__ __forceinline__ uint64_t whole() const { return uint64_t(value) << 32 | place; }
  __device__ __forceinline__ bool before(Key const& other) const {
    return whole() > other.whole();
  }
  __device__ __forceinline__ void merge(Key const& other) {
    if (other.before(*this)) *this = other;
  }
  __device__ __forceinline__ int64_t position() const { return int64_t(~place); }
};

template <bool Largest>
__device__ __forceinline__ Key key_of(float x, unsigned at) {
  const unsigned bits = is_nan(x) ? 0x7fffffffu : __float_as_uint(x == 0.0f ? 0.0f : x);
  const unsigned rising = bits >> 31 ? ~bits : bits | 0x80000000u;
  Key key;
  key.place = ~at;
  key.value = Largest ? rising : ~rising;
  return key;
}
template <bool Largest>
__device__ __forceinline__ float value_of(Key const& key) {
  const unsigned rising = Largest ? key.value : ~key.value;
  return __uint_as_float(rising >> 31 ? rising & 0x7fffffffu : ~rising);
}

// A bitonic sort: in each step, every thread compares pairs of keys that lie `apart`. While `apart`
// is at most 32, the pairs of a warp contain the same 64 keys in every step, so the steps need no
// barrier of the CTA.
__device__ __forceinline__ void sort_keys(Key* keys, int padded) {
  __syncthreads();
  for (int size = 2; size <= padded; size *= 2)
    for (int apart = size / 2; apart > 0; apart /= 2) {
      for (int pair = threadIdx.x; pair < padded / 2; pair += blockDim.x) {
        const int a = 2 * pair - (pair & (apart - 1)), b = a + apart;
        const bool falling = (a & size) == 0;  // the greater key first
        if (keys[falling ? b : a].before(keys[falling ? a : b])) {
          const Key other = keys[a];
          keys[a] = keys[b];
          keys[b] = other;
        }
      }
      if (apart > 32 || (apart == 1 && size >= 64)) __syncthreads();
      else __syncwarp();
    }
  __syncthreads();
}

}  // namespace cutegen
