// SPDX-License-Identifier: Apache-2.0
// This header has the code that conv_rows.cuh and conv_patches.cuh share: the sizes of a
// convolution, and the calls of its epilogue (the work after the convolution).
//
// Contract: consumer warpgroup i has the threads 128 * i to 128 * i + 127. After a tile, a thread
// of a consumer holds results as wgmma returns them, in G::kTileN / 2 floats for each block of 64
// positions. G::kChannelValues is the number of floats that the epilogue needs for each channel.
//
// - each_channel() and channel() keep values that depend only on the channel.
// - finish(storage, results, row_of, place, read, value, store) calls store(value(sum, read(c, at), c,
//   at), c, at) for each result. `at` is place(row, lane). row_of(block, line) returns `row`, the
//   index of a position among the positions of all images. The position is number `line` (0 to 63)
//   of a block.
//   - With G::kSlice 0, results leave registers directly: `c` is a ConvChannel (conv_result.cuh), and
//     `lane` is c.lane. This suits results whose channels are contiguous.
//   - Otherwise, kSlice channels at a time pass through shared memory, so that neighbouring threads
//     store neighbouring positions. Then `c` is an int, `lane` is 0, and the storage must have a
//     member `staged`.
//
// Example: struct Engine : ConvFinish<G> { struct Storage { typename ConvFinish<G>::Channels channels; }; };
#pragma once

#include <cutegen/conv_result.cuh>

namespace cutegen {

// ConvWindow has the sizes of a convolution. Element i of each array belongs to axis i.
struct ConvWindow {
  int out[3], kernel[3], start[3], stride[3], dilation[3];  // `start` is the negated padding
  int chunks;                                               // number of steps for a filter tap

  CUTE_DEVICE int steps() const { return kernel[0] * kernel[1] * kernel[2] * chunks; }
};

template <class G>
class ConvFinish {
  static constexpr int kColumns = G::kTileN / 4;  // columns of a row that a thread holds
  // kPitch is rounded up, so that a ChannelValues is aligned to its size or to 16 bytes.
  static constexpr int kPitch =
      G::kChannelValues == 0 ? 1 : G::kChannelValues <= 2 ? G::kChannelValues : (G::kChannelValues + 3) / 4 * 4;

 public:
  using ChannelValues = Pack<float, kPitch>;
  using Channels = ChannelValues[2][G::kChannelValues == 0 ? 1 : G::kTileN];  // of each consumer
  static constexpr int kPlaces = 132;  // 128 positions, and padding against bank conflicts
  using Staged = float[2][G::kSlice == 0 ? 1 : G::kSlice][kPlaces];

  // Stores f(channel) for the channels of a tile. Does nothing if `tile` is the same as in the
  // previous call.
  template <class Storage, class F>
  CUTE_DEVICE void each_channel(Storage& storage, int tile, F&& f) {
    if (tile == kept_tile_) return;
    kept_tile_ = tile;
    sync();  // now all threads have read the values of the previous tile
    for (int c = threadIdx.x % 128; c < G::kTileN; c += 128) storage.channels[consumer()][c] = f(c);
    sync();
  }

  // Returns the value that each_channel() stored for channel c of the tile.
  template <class Storage>
  static CUTE_DEVICE ChannelValues channel(Storage& storage, int c) {
    return storage.channels[consumer()][c];
  }

 protected:
  template <class Storage, int Blocks, class O, class P, class R, class V, class F>
  static CUTE_DEVICE void finish(Storage& storage, float const (&results)[Blocks][G::kTileN / 2],
                                 O&& row_of, P&& place, R&& read, V&& value, F&& store) {
    const int thread = threadIdx.x % 128;
    if constexpr (G::kSlice > 0) {
      static_assert(Blocks == 2, "a thread stores one of 128 positions");
      auto& staged = storage.staged[consumer()];
      auto const at = place(row_of(thread / 64, thread % 64), 0);
      const int line = thread / 32 * 16 + thread % 32 / 4, channel = thread % 4 * 2;
      // The reads of a slice overlap with the work on the previous slice.
      decltype(read(0, at)) next[G::kSlice];
      CUTE_UNROLL
      for (int i = 0; i < G::kSlice; ++i) next[i] = read(i, at);
      CUTE_UNROLL
      for (int slice = 0; slice < G::kTileN; slice += G::kSlice) {
        sync();  // now all threads have read the previous slice
        CUTE_UNROLL
        for (int i = 0; i < G::kSlice / 2; ++i)
          CUTE_UNROLL
          for (int block = 0; block < Blocks; ++block)
            staged[i / 4 * 8 + channel + i % 2][block * 64 + line + i % 4 / 2 * 8] =
                results[block][slice / 2 + i];
        sync();
        decltype(read(0, at)) more[G::kSlice];
        CUTE_UNROLL
        for (int i = 0; i < G::kSlice; ++i) {
          more[i] = next[i];
          if (slice + G::kSlice < G::kTileN) next[i] = read(slice + G::kSlice + i, at);
        }
        decltype(value(0.0f, more[0], 0, at)) finished[G::kSlice];
        CUTE_UNROLL
        for (int i = 0; i < G::kSlice; ++i) finished[i] = value(staged[i][thread], more[i], slice + i, at);
        CUTE_UNROLL
        for (int i = 0; i < G::kSlice; ++i) store(finished[i], slice + i, at);
      }
    } else {
      const int channel = thread % 4 * 2, top = thread / 32 * 16 + thread % 32 / 4;
      CUTE_UNROLL
      for (int line = 0; line < 2 * Blocks; ++line) {  // a thread holds parts of these rows
        const int block = line / 2, half = line % 2;
        auto const at = place(row_of(block, top + half * 8), channel);
        CUTE_UNROLL
        for (int first = 0; first < kColumns; first += 8)
          eight([&](int i) { return results[block][first * 2 + i / 2 * 4 + half * 2 + i % 2]; },
                [&](int i) { return ConvChannel{channel, (first + i) / 2 * 8 + i % 2}; }, at, read,
                value, store);
      }
    }
  }

  static CUTE_DEVICE int consumer() { return threadIdx.x / 128; }

 private:
  // Calls read(), value() and store() for eight channels of one position. The order of the loops
  // hides latencies.
  template <class S, class C, class A, class R, class V, class F>
  static CUTE_DEVICE void eight(S&& sum, C&& channel, A const& at, R&& read, V&& value, F&& store) {
    decltype(read(channel(0), at)) more[8];
    decltype(value(0.0f, more[0], channel(0), at)) finished[8];
    CUTE_UNROLL
    for (int i = 0; i < 8; ++i) more[i] = read(channel(i), at);
    CUTE_UNROLL
    for (int i = 0; i < 8; ++i) finished[i] = value(sum(i), more[i], channel(i), at);
    CUTE_UNROLL
    for (int i = 0; i < 8; ++i) store(finished[i], channel(i), at);
  }

  static CUTE_DEVICE void sync() {
    if (consumer() == 0) asm volatile("bar.sync 1, 128;" ::: "memory");
    else asm volatile("bar.sync 2, 128;" ::: "memory");
  }

  int kept_tile_ = -1;
};

}  // namespace cutegen
