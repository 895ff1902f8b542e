// SPDX-License-Identifier: Apache-2.0
// Orders the elements of a row by value, for top-k and sort.
//
// Contract: a Key holds a float and its position in the row; a WideKey holds an integer and its
// position. Positions must be below 2^32 - 1. Keys with larger values come first or, if Largest is
// false, keys with smaller values. If two values are equal, the key with the smaller position comes
// first. NaN counts as the largest value, and +0 equals -0, as in PyTorch. A default-constructed
// Key comes after all other keys. The function sort_keys() sorts `padded` keys in shared memory;
// `padded` must be a power of two, and all threads of the CTA must call the function.
//
// Example: Key k = key_of<true>(x, at); combine_row<256>(k, shared); float x = value_of<true>(k);
#pragma once

#include <cutegen/reduce.cuh>

namespace cutegen {

struct Key {
  unsigned place = 0, value = 0;  // two 32-bit words, because shuffle_xor() moves 32-bit words
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

// A WideKey is the key for an int64_t value; it has 16 bytes.
struct WideKey {
  uint64_t value = 0;
  unsigned place = 0, unused = 0;
  __device__ __forceinline__ bool before(WideKey const& other) const {
    return value != other.value ? value > other.value : place > other.place;
  }
  __device__ __forceinline__ int64_t position() const { return int64_t(~place); }
};

constexpr uint64_t kSignBit = uint64_t(1) << 63;
template <bool Largest>
__device__ __forceinline__ WideKey key_of(int64_t x, unsigned at) {
  const uint64_t rising = uint64_t(x) ^ kSignBit;
  WideKey key;
  key.place = ~at;
  key.value = Largest ? rising : ~rising;
  return key;
}
template <bool Largest>
__device__ __forceinline__ int64_t value_of(WideKey const& key) {
  return int64_t((Largest ? key.value : ~key.value) ^ kSignBit);
}

// Merges pairs of neighbouring sorted runs of `run` keys each. A call of merge_runs() writes only
// `Each` keys of the result, from index `at` on, so that many threads can share the merge.
template <int Each, class K>
__device__ __forceinline__ void merge_runs(K const* from, K* to, int64_t length, int64_t run, int64_t at) {
  const int64_t begin = at / (2 * run) * (2 * run), skip = at - begin;
  const int64_t rest = length - begin, left = rest < run ? rest : run;
  const int64_t right = rest - left < run ? rest - left : run;
  K const* const a = from + begin;
  K const* const b = a + left;
  int64_t low = skip > right ? skip - right : 0, high = skip < left ? skip : left;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a[middle].before(b[skip - 1 - middle])) low = middle + 1;
    else high = middle;
  }
  int64_t i = low, j = skip - low;
  for (int n = 0; n < Each && at + n < length && skip + n < left + right; ++n) {
    const bool first = j >= right || (i < left && a[i].before(b[j]));
    to[at + n] = first ? a[i++] : b[j++];
  }
}

// Sorts with a bitonic network. In each pass, every thread compares pairs of keys whose indices
// differ by `apart`. While `apart` is at most 32, each warp works on the same 64 keys in every
// pass, so these passes need no barrier of the whole CTA.
template <class K>
__device__ __forceinline__ void sort_keys(K* keys, int padded) {
  __syncthreads();
  for (int size = 2; size <= padded; size *= 2)
    for (int apart = size / 2; apart > 0; apart /= 2) {
      for (int pair = threadIdx.x; pair < padded / 2; pair += blockDim.x) {
        const int a = 2 * pair - (pair & (apart - 1)), b = a + apart;
        const bool falling = (a & size) == 0;  // whether the greater key comes first
        if (keys[falling ? b : a].before(keys[falling ? a : b])) {
          const K other = keys[a];
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
