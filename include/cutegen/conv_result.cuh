// SPDX-License-Identifier: Apache-2.0
// Computes addresses, and loads and stores elements, for the epilogue of a convolution
// (conv_wgmma.cuh).
//
// Contract: conv_channel() returns the element of a channel. load_if() loads an element, store_if()
// stores an element, and store_pair_if() stores two neighbours. The address of store_pair_if() must
// be a multiple of the pair's size. If `inside` is false, these functions read and store nothing,
// and the address may lie outside the tensor.
//
// Example: cutegen::store_if(inside, cutegen::conv_channel(out, at.at_out, c, bytes), result);
#pragma once

#include <cute/tensor.hpp>
#include <cutegen/vec.cuh>

namespace cutegen {

// A ConvChannel stands for channel lane + step of the tile, in kernels whose results do not pass
// through shared memory. `lane` depends on the thread, and the offset of a position already
// includes it. `step` is a constant, the same for all threads.
struct ConvChannel {
  int lane, step;
  CUTE_DEVICE operator int() const { return lane + step; }
  friend CUTE_DEVICE bool operator<(ConvChannel c, int end) { return c.step < end - c.lane; }
};

// Returns the nearest channel that is less than `end`.
CUTE_DEVICE int conv_nearest(int c, int end) { return min(c, end - 1); }
CUTE_DEVICE ConvChannel conv_nearest(ConvChannel c, int end) {
  return {c.lane, min(c.step, end - 1 - c.lane)};
}

// Returns the distance of channel c from the channel to which the offset of a position refers. This
// is channel 0 or, for a ConvChannel, channel `lane`.
CUTE_DEVICE int conv_step(int c) { return c; }
CUTE_DEVICE int conv_step(ConvChannel c) { return c.step; }

// Returns the element of channel c at a position whose first channel is at `offset`. The distance
// between channels is `bytes`, which must be less than 4 GiB.
template <class T, class C>
CUTE_DEVICE T& conv_channel(T* data, int64_t offset, C c, int64_t bytes) {
  using Byte = cute::conditional_t<cute::is_const_v<T>, char const, char>;
  return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(data + offset) +
                               int64_t(conv_step(c)) * unsigned(bytes));
}

// Makes the compiler compute a value here, and not later in the branch that needs it. ptxas does
// not replace a branch by predicated instructions if the branch contains this work.
template <class T>
CUTE_DEVICE void conv_pin(T& value) {
  if constexpr (cute::is_pointer_v<T>) {
    asm volatile("" : "+l"(value));
    __builtin_assume(__isGlobal(value));
  }
  if constexpr (cute::is_same_v<T, float>) asm volatile("" : "+f"(value));
}

// Returns an element, or zero if `inside` is false.
template <class T>
CUTE_DEVICE T load_if(bool inside, T const& from) {
  T const* address = &from;
  conv_pin(address);
  T value{};
  if (inside) value = *address;
  return value;
}
template <class T>
CUTE_DEVICE void store_if(bool inside, T& to, T value) {
  T* address = &to;
  conv_pin(address), conv_pin(value);
  if (inside) *address = value;
}
template <class T>
CUTE_DEVICE void store_pair_if(bool inside, T& to, T first, T second) {
  auto* address = reinterpret_cast<Pack<T, 2>*>(&to);
  conv_pin(address), conv_pin(first), conv_pin(second);
  if (inside) *address = {first, second};
}

// Joins two functions into one object: One stores one result, Two stores two neighbouring results.
template <class One, class Two>
struct ConvStores : One, Two {
  using One::operator(), Two::operator();
};
template <class One, class Two>
ConvStores(One, Two) -> ConvStores<One, Two>;

}  // namespace cutegen
