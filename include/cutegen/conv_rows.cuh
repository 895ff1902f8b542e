// SPDX-License-Identifier: Apache-2.0
// Convolution of a channels-last input on Hopper's tensor cores, as a product whose rows are the
// positions of the result: for each filter tap, TMA loads the inputs of a tile in im2col mode.
//
// Contract: this header needs sm_90a. The input has the layout (image, positions, channels), with
// channels contiguous and all other strides multiples of 16 bytes. Element is half_t, bfloat16_t or
// tfloat32_t; floats must already be rounded to tf32. The weights have the layout (output channel,
// step, channel of the step). A step is a filter tap with kDepth input channels (64, or 32 floats);
// weights beyond the input channels are zero. TurnedTile, TurnedHalves and pack_weights() write
// these layouts. Sums are floats. kSpatial is the number of axes, 1 to 3. If there are fewer than
// three axes, the first axes are missing and have size 1.
//
// For a convolution of floats in tf32, Element may be half_t: both types have 11 significant bits,
// and the tensor cores multiply half_t twice as fast. The range of half_t is narrower, so the
// kernels that write the layouts also find out whether half_t is as accurate as tf32
// (fits_halves()). If not, the program uses tfloat32_t.
//
// With pairs of half_t, ConvPatches computes a convolution of floats as accurately as float32
// (HalfPair). TurnedPairs writes the input: all high parts of a position, then all low parts.
// pack_weights() multiplies weights by Geometry::kScale, and writes the high parts of a filter's
// steps, then the low parts. With kJoined, each step has 32 high parts and then 32 low parts. If
// fits_pairs() is false for some values, the program uses another kernel.
//
// With kKept above 0, weights stay in shared memory for all tiles of a CTA. There must then be at
// most kTileN output channels and kKept steps.
//
// The launch has as many CTAs as the GPU holds. Each CTA computes tiles of kTileM positions and
// kTileN output channels, one after the other. Two consumer warpgroups take turns: while one
// multiplies a tile, the other runs the epilogue of another tile (the work after the convolution).
//
// - write(storage, window, images, tile, place, read, value, store) calls store(value(sum, read(c, at),
//   c, at), c, at) for each result (conv_finish.cuh), as write() in conv_wgmma.cuh does.
// - each_channel() and channel() keep values that depend only on the channel.
// - reduce(), row() and each_place() reduce over the channels of a position (conv_finish.cuh). Like
//   write(), reduce() and each_place() take storage, window, images and tile in place of results and
//   row_of.
//
// Example: ConvRows<G> conv; conv.begin(storage);
//          if (conv.produces()) {
//            conv.start_loading();
//            for (tile...) conv.load(map_input, map_weights, window, tile, storage);
//          } else {
//            conv.start_multiplying();
//            for (tile...) {
//              if (conv.skips(window, tile)) continue;
//              conv.multiply(window, tile, storage);
//              conv.write(storage, window, images, tile, place, read, value, store);
//            }
//          }
#pragma once

#include <cutegen/conv_finish.cuh>
#include <cutegen/gemm_wgmma.cuh>
#include <cutegen/steps.cuh>
#include <cutegen/tf32.cuh>
#include <cutegen/vec.cuh>

namespace cutegen {

// The index of a tile. In a transposed convolution with a stride, a tile also belongs to a phase of
// the axes before the last (conv_patches.cuh).
struct ConvTile : TileIndex {
  int phase;
};

// Returns tile number `id`. Tiles of different phases that have the same positions and channels are
// neighbours.
template <int Phases>
CUTE_DEVICE ConvTile conv_tile(int id, int tiles_m, int tiles_n) {
  const TileIndex tile = tile_index(id, tiles_m, tiles_n * Phases);
  return {{tile.m, tile.n / Phases}, tile.n % Phases};
}

template <class G>
struct ConvRows : WgmmaGemm<typename G::Element, typename G::Element, typename G::Element, G::kTileM,
                            G::kTileN, G::kStages, 8, 8, true, true, true, 1, 1, true, G::kKept>,
                  ConvFinish<G> {
  using Geometry = G;
  using Element = typename G::Element;
  using Gemm = WgmmaGemm<Element, Element, Element, G::kTileM, G::kTileN, G::kStages, 8, 8, true,
                         true, true, 1, 1, true, G::kKept>;
  static constexpr int kDepth = 128 / int(sizeof(Element)), kParts = 1;
  static constexpr bool kJoined = false;
  static_assert(G::kTileN % 32 == 0 && G::kSpatial >= 1 && G::kSpatial <= 3);

  struct Storage : Gemm::Storage {
    typename ConvFinish<G>::Channels channels;
    typename ConvFinish<G>::Staged staged;
    typename ConvFinish<G>::Rows rows;
  };

  // Returns the number of tiles of positions.
  static CUTE_DEVICE int tiles(ConvWindow const& window, int64_t images) {
    return int(cute::ceil_div(images * window.out[0] * window.out[1] * window.out[2], int64_t(G::kTileM)));
  }

  // Loads the inputs and weights of a tile.
  CUTE_DEVICE void load(cute::TmaDescriptor const& input, cute::TmaDescriptor const& weights,
                        ConvWindow const& window, ConvTile tile, Storage& storage) {
    // `from` is the position of the first input of the tile's first result, without a filter tap's
    // offset.
    int rest = tile.m * G::kTileM, from[3];
    CUTE_UNROLL
    for (int i = 2; i >= 0; --i) {
      from[i] = rest % window.out[i] * window.stride[i] + window.start[i];
      rest /= window.out[i];
    }
    int tap[3] = {0, 0, 0}, chunk = 0;
    this->load_by(0, window.steps(), storage, [&](Element* a, Element* b, uint64_t& full, int step) {
      const auto z = uint16_t(tap[0] * window.dilation[0]), y = uint16_t(tap[1] * window.dilation[1]),
                 x = uint16_t(tap[2] * window.dilation[2]);
      const int channel = chunk * kDepth;
      if constexpr (G::kSpatial == 1)
        cute::SM90_TMA_LOAD_IM2COL_3D::copy(&input, &full, a, channel, from[2], rest, x);
      else if constexpr (G::kSpatial == 2)
        cute::SM90_TMA_LOAD_IM2COL_4D::copy(&input, &full, a, channel, from[2], from[1], rest, x, y);
      else
        cute::SM90_TMA_LOAD_IM2COL_5D::copy(&input, &full, a, channel, from[2], from[1], from[0],
                                            rest, x, y, z);
      if (b != nullptr)
        cute::SM90_TMA_LOAD_2D::copy(&weights, &full, uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST),
                                     b, step * kDepth, tile.n * G::kTileN);
      if (++chunk < window.chunks) return;
      chunk = 0;
      if (++tap[2] < window.kernel[2]) return;
      tap[2] = 0;
      if (++tap[1] < window.kernel[1]) return;
      tap[1] = 0, ++tap[0];
    });
  }

  // Returns whether the other consumer computes this tile.
  CUTE_DEVICE bool skips(ConvWindow const& window, ConvTile) { return Gemm::skips(0, window.steps()); }

  CUTE_DEVICE void multiply(ConvWindow const& window, ConvTile, Storage& storage) {
    Gemm::multiply(0, window.steps(), storage);
  }

  template <class P, class R, class V, class F>
  CUTE_DEVICE void write(Storage& storage, ConvWindow const&, int64_t, ConvTile tile, P&& place,
                         R&& read, V&& value, F&& store) const {
    this->finish(storage, this->results, rows_of(tile), place, read, value, store);
  }

  template <class Accumulator, bool Replaces, class P, class R, class V>
  CUTE_DEVICE void reduce(Storage& storage, ConvWindow const&, int64_t, ConvTile tile, int k, int channels,
                          P&& place, R&& read, V&& value) {
    ConvFinish<G>::template reduce<Accumulator, Replaces>(storage, k, channels, this->results,
                                                          rows_of(tile), place, read, value);
  }

  template <class P, class F>
  CUTE_DEVICE void each_place(Storage&, ConvWindow const&, int64_t, ConvTile tile, P&& place, F&& f) const {
    ConvFinish<G>::each_place(rows_of(tile), place, f);
  }

 private:
  static CUTE_DEVICE auto rows_of(ConvTile tile) {
    return [=](int block, int line) { return tile.m * G::kTileM + block * 64 + line; };
  }
};

// Rounds a value to the type that the tensor cores multiply. No nonzero value becomes zero in
// half_t, so that fits_halves() sees every nonzero value.
template <class Element>
CUTE_DEVICE Element conv_operand(float x) {
  if constexpr (cute::is_same_v<Element, float>) return x;
  else if constexpr (sizeof(Element) == 4)
    return Element::bitcast(__float_as_uint(tf32_nearest(x)));
  const Element rounded(x);
  if constexpr (cute::is_same_v<Element, cutlass::half_t>)
    if (rounded == Element(0) && x != 0) return Element(copysignf(0x1p-24f, x));
  return rounded;
}

// Returns the bits of the magnitude of a half_t. Read as integers, these bits have the order of the
// magnitudes.
CUTE_DEVICE unsigned half_magnitude(cutlass::half_t x) { return x.raw() & 0x7fffu; }

// Returns whether half_t is as accurate as tf32 for a group of operands whose products one sum adds
// up. `largest` is half_magnitude() of the largest operand, which must be zero or from 2^-10 to
// 2^15. Below 2^-14, half_t rounds to multiples of 2^-24. These multiples are finer than the
// multiples of 2^-20 to which tf32 rounds an operand of size 2^-10.
CUTE_DEVICE bool fits_halves(unsigned largest) {
  constexpr unsigned kLeast = (15 - 10) << 10, kMost = (15 + 15) << 10;  // 2^-10 and 2^15
  return largest == 0 || (largest >= kLeast && largest <= kMost);
}

// A HalfPair holds a float as high + low / kLowScale. The scale keeps the low part's magnitude near
// the high part's magnitude, so that both have 11 significant bits.
struct HalfPair {
  static constexpr float kLowScale = 2048;
  cutlass::half_t high, low;
  CUTE_DEVICE explicit HalfPair(float x)
      : high(conv_operand<cutlass::half_t>(x)), low((x - float(high)) * kLowScale) {}
};

// Returns whether a HalfPair is accurate enough for a group of operands whose products one sum adds
// up. `largest` is half_magnitude() of the largest high part, which must be zero or from 2^-9 to
// 2^15. A pair's error is at most 2^-23 of its value or 2^-36, which is 2^-27 of 2^-9.
CUTE_DEVICE bool fits_pairs(unsigned largest) {
  constexpr unsigned kLeast = (15 - 9) << 10, kMost = (15 + 15) << 10;  // 2^-9 and 2^15
  return largest == 0 || (largest >= kLeast && largest <= kMost);
}

// Copies positions [first, first + kPositions) and channels [channel, channel + Channels) of an image
// to the layout (position, channel). The result has `pitch` channels, a multiple of 8. at(position)
// returns a position's offset. A CTA of 256 threads calls fetch(), which starts to load a tile, then
// put(), and after a barrier store(). `shared` is an array of kElements elements. With Vector above 1,
// positions are contiguous, and each address is a multiple of Vector elements. If Watched is true,
// Element is half_t, and store() returns whether fits_halves() is true for the channels of each
// position that the thread writes.
template <class Element, int Vector, bool Watched, class T, int Channels = 64>
class TurnedTile {
 public:
  static constexpr int kPositions = 64 * 64 / Channels;
  static constexpr int kPitch = Channels + (sizeof(Element) == 4 ? 1 : 2),
                       kElements = kPositions * kPitch;

  template <class A>
  CUTE_DEVICE void fetch(T const* from, int64_t channel_stride, int positions, int channels, int first,
                         int channel, A&& at) {
    CUTE_UNROLL
    for (int i = 0; i < kPacks; ++i) {
      const int index = i * 256 + threadIdx.x, c = channel + index / kAcross,
                p = first + index % kAcross * Vector;
      packs_[i] = Pack<T, Vector>{};
      if (c < channels && p < positions)
        packs_[i] = *reinterpret_cast<Pack<T, Vector> const*>(from + c * channel_stride + at(p));
    }
  }

  CUTE_DEVICE void put(Element* shared) const {
    CUTE_UNROLL
    for (int i = 0; i < kPacks; ++i) {
      const int index = i * 256 + threadIdx.x;
      CUTE_UNROLL
      for (int v = 0; v < Vector; ++v)
        shared[(index % kAcross * Vector + v) * kPitch + index / kAcross] =
            conv_operand<Element>(to_float(packs_[i].element[v]));
    }
  }

  static CUTE_DEVICE bool store(Element const* shared, int positions, int first, int channel,
                                Element* to, int pitch) {
    constexpr int kWidth = 16 / sizeof(Element);
    bool fits = true;
    CUTE_UNROLL
    for (int i = 0; i < 64 * 64 / 256 / kWidth; ++i) {
      const int index = i * 256 + threadIdx.x, c = index % (Channels / kWidth) * kWidth,
                p = index / (Channels / kWidth);
      Pack<Element, kWidth> pack;
      CUTE_UNROLL
      for (int v = 0; v < kWidth; ++v) pack.element[v] = shared[p * kPitch + c + v];
      if constexpr (Watched) {
        unsigned largest = 0;
        CUTE_UNROLL
        for (int v = 0; v < kWidth; ++v) largest = max(largest, half_magnitude(pack.element[v]));
        fits &= fits_halves(largest_of<Channels / kWidth>(largest));
      }
      if (first + p < positions && channel + c < pitch)
        *reinterpret_cast<Pack<Element, kWidth>*>(to + int64_t(first + p) * pitch + channel + c) = pack;
    }
    return fits;
  }

 protected:
  // Returns the largest value of a group of neighbouring lanes.
  template <int Lanes>
  static CUTE_DEVICE unsigned largest_of(unsigned value) {
    CUTE_UNROLL
    for (int lanes = 1; lanes < Lanes; lanes *= 2)
      value = max(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    return value;
  }

 private:
  static constexpr int kAcross = kPositions / Vector, kPacks = 64 * 64 / 256 / Vector;
  Pack<T, Vector> packs_[kPacks];
};

// TurnedPairs does the same as TurnedTile with pairs of half_t. `shared` is an array of floats. The
// low part of channel c of a position has place `pitch` + c. store() returns whether fits_pairs() is
// true for the channels of each position that the thread writes.
template <int Vector, class T, int Channels>
class TurnedPairs : public TurnedTile<float, Vector, false, T, Channels> {
  using Tile = TurnedTile<float, Vector, false, T, Channels>;

 public:
  static CUTE_DEVICE bool store(float const* shared, int positions, int first, int channel,
                                cutlass::half_t* to, int pitch) {
    constexpr int kPacks = Channels / 8;  // of a position
    bool fits = true;
    CUTE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int index = i * 256 + threadIdx.x, c = index % kPacks * 8, p = index / kPacks;
      Pack<cutlass::half_t, 8> high, low;
      unsigned largest = 0;
      CUTE_UNROLL
      for (int v = 0; v < 8; ++v) {
        const HalfPair pair(shared[p * Tile::kPitch + c + v]);
        high.element[v] = pair.high, low.element[v] = pair.low;
        largest = max(largest, half_magnitude(pair.high));
      }
      fits &= fits_pairs(Tile::template largest_of<kPacks>(largest));
      if (first + p >= positions || channel + c >= pitch) continue;
      cutlass::half_t* line = to + int64_t(first + p) * (2 * pitch) + channel + c;
      *reinterpret_cast<Pack<cutlass::half_t, 8>*>(line) = high;
      *reinterpret_cast<Pack<cutlass::half_t, 8>*>(line + pitch) = low;
    }
    return fits;
  }
};

// TurnedHalves does the same as TurnedTile for 64 channels and 16-bit elements that need no
// conversion. Lanes transpose blocks of 8 x 8 elements as they read shared memory, so that a thread
// stores 16 bytes.
// `shared` is aligned to 16 bytes. fetch() loads Vector elements of a channel at a time.
template <class Element, int Vector>
class TurnedHalves {
 public:
  static constexpr int kPositions = 64, kElements = 64 * 64;

 private:
  static constexpr int kLoads = 8 / Vector;  // number of loads for a chunk of 8 positions
  struct alignas(16) Chunk {
    Pack<Element, Vector> packs[kLoads];
  };
  Chunk chunks_[2];

  // Returns the place of a chunk of a channel. Eight lanes that access shared memory at the same
  // time use different banks.
  static CUTE_DEVICE int place(int channel, int chunk) { return channel * 64 + (chunk ^ channel % 8) * 8; }

 public:
  template <class A>
  CUTE_DEVICE void fetch(Element const* from, int64_t channel_stride, int positions, int channels,
                         int first, int channel, A&& at) {
    CUTE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int c = channel + i * 32 + threadIdx.x / 8, p = first + threadIdx.x % 8 * 8;
      CUTE_UNROLL
      for (int j = 0; j < kLoads; ++j) {
        chunks_[i].packs[j] = Pack<Element, Vector>{};
        if (c < channels && p + j * Vector < positions)
          chunks_[i].packs[j] = *reinterpret_cast<Pack<Element, Vector> const*>(
              from + c * channel_stride + at(p + j * Vector));
      }
    }
  }

  CUTE_DEVICE void put(Element* shared) const {
    CUTE_UNROLL
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<Chunk*>(shared + place(i * 32 + threadIdx.x / 8, threadIdx.x % 8)) = chunks_[i];
  }

  static CUTE_DEVICE bool store(Element const* shared, int positions, int first, int channel,
                                Element* to, int pitch) {
    const int lane = threadIdx.x % 32, chunk = threadIdx.x / 32, position = first + chunk * 8 + lane / 4;
    CUTE_UNROLL
    for (int half = 0; half < 2; ++half) {
      uint32_t words[4];  // word i has two channels of block i at one position
      cute::SM75_U16x8_LDSM_T::copy(
          *reinterpret_cast<cute::uint128_t const*>(shared + place(half * 32 + lane, chunk)), words[0],
          words[1], words[2], words[3]);
      gather_words(words);
      const int c = channel + half * 32 + lane % 4 * 8;
      if (position < positions && c < pitch)
        *reinterpret_cast<uint4*>(to + int64_t(position) * pitch + c) =
            make_uint4(words[0], words[1], words[2], words[3]);
    }
    return true;
  }
};

// Writes the packed weights; each step has Engine::kDepth channels. `blocks` CTAs share the work,
// and this CTA has number `block`. weight(out, in, k0, k1, k2) returns an unpacked weight. If
// Watched is true, Engine::Element is half_t, and the function returns whether fits_halves() is
// true for every 32 input channels of a filter tap. If Engine::kParts is 2, the function writes
// pairs, and returns whether fits_pairs() is true for every 32 input channels of a filter tap. Each
// warp packs one filter tap of an output channel at a time.
template <class Engine, bool Watched, class F>
CUTE_DEVICE bool pack_weights(int const (&kernel)[3], int in_channels, int64_t out_channels,
                              F&& weight, void* packed, int block, int blocks) {
  using Element = typename Engine::Element;
  constexpr int kLoads = 8;  // in flight
  constexpr bool kPairs = Engine::kParts == 2, kJoined = Engine::kJoined;
  const int depth = cute::ceil_div(in_channels, Engine::kDepth) * Engine::kDepth,
            taps = kernel[0] * kernel[1] * kernel[2], rows = int(out_channels) * taps,
            warps = blockDim.x / 32, lane = threadIdx.x % 32;
  bool fits = true;
  for (int row = block * warps + threadIdx.x / 32; row < rows; row += blocks * warps) {
    int rest = row;
    const int k2 = rest % kernel[2];
    rest /= kernel[2];
    const int k1 = rest % kernel[1];
    rest /= kernel[1];
    const int k0 = rest % kernel[0], out = rest / kernel[0];
    // The rows of earlier output channels, then the taps of this one.
    const int64_t before = kPairs && !kJoined ? row + int64_t(out) * taps : row;
    Element* to = static_cast<Element*>(packed) + before * depth;
    for (int first = 0; first < depth; first += 32 * kLoads) {
      float values[kLoads];
      CUTE_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const int in = first + i * 32 + lane;
        values[i] = in < in_channels ? to_float(weight(out, in, k0, k1, k2)) : 0.0f;
      }
      CUTE_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const int at = first + i * 32 + lane;
        if constexpr (kPairs) {
          const HalfPair pair(values[i] * Engine::Geometry::kScale);
          const int64_t low = kJoined ? 32 : int64_t(taps) * depth;
          if (first + i * 32 < (kJoined ? 32 : depth)) to[at] = pair.high, to[low + at] = pair.low;
          fits &= fits_pairs(__reduce_max_sync(0xffffffffu, half_magnitude(pair.high)));
        } else {
          const Element value = conv_operand<Element>(values[i]);
          if (first + i * 32 < depth) to[at] = value;
          if constexpr (Watched)
            fits &= fits_halves(__reduce_max_sync(0xffffffffu, half_magnitude(value)));
        }
      }
    }
  }
  return fits;
}

}  // namespace cutegen
