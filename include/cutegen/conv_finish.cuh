// SPDX-License-Identifier: Apache-2.0
// This header has the code that conv_rows.cuh and conv_patches.cuh share: the sizes of a
// convolution, and the calls of its epilogue (the work after the convolution).
//
// Contract: consumer warpgroup i has the threads 128 * i to 128 * i + 127. After a tile, a thread
// of a consumer holds results as wgmma returns them, in G::kTileN / 2 floats for each block of 64
// positions. G::kChannelValues is the number of floats that the epilogue needs for each channel, and
// G::kRowValues the number of reductions over the channels. With reductions, a tile must have all
// channels. In a transposed convolution, the kTileN columns of a tile belong to G::kSpread phases of
// the last axis (conv_patches.cuh), with kTileN / kSpread channels each. Otherwise, kSpread is 1.
//
// - each_channel() and channel() keep values that depend only on the channel.
// - finish(storage, results, row_of, place, read, value, store) calls store(value(sum, read(c, at), c,
//   at), c, at) for each result. `at` is place(row, lane, own). row_of(block, line) returns `row`, the
//   index of a position among the positions of all images. The position is number `line` (0 to 63)
//   of a block. `own` is phase * 128 + its number (0 to 127) among the consumer's positions.
//   - With G::kSlice 0, results leave registers directly: `c` is a ConvChannel (conv_result.cuh), and
//     `lane` is c.lane. This suits results whose channels are contiguous. kSpread must be 1.
//   - Otherwise, kSlice channels at a time pass through shared memory, so that neighbouring threads
//     store neighbouring positions. Then `c` is an int, `lane` is 0, and the storage must have a
//     member `staged`. kSlice is a multiple of 8 * kSpread. With G::kPairs, kSpread is 2, and
//     finish() calls store(result, next, c, at) for the results of both phases.
// - reduce<Accumulator, Replaces>(storage, k, channels, results, row_of, place, read, value) computes
//   reduction number k over the first `channels` channels: an Accumulator (reduce.cuh) adds value(sum,
//   rows, channel, at) of each channel in a fixed order. `rows` is read(at). If Replaces is true, the
//   results of value() replace the results of the convolution. After reduce(), row(storage, k, own)
//   returns the result of reduction k for a position. The storage must have a member `rows`.
// - each_place(row_of, place, f) calls f(place(row, 0, own)) once for each position of each phase.
//
// Example: struct Engine : ConvFinish<G> { struct Storage { typename ConvFinish<G>::Channels channels; }; };
#pragma once

#include <cutegen/conv_result.cuh>
#include <cutegen/reduce.cuh>

namespace cutegen {

// ConvWindow has the sizes of a convolution. Element i of each array belongs to axis i.
struct ConvWindow {
  int out[3], kernel[3], start[3], stride[3], dilation[3];  // `start` is the negated padding
  int chunks;                                               // number of steps for a filter tap
  int filters;                                              // rows of the packed weights of a phase
  int pitch;  // channels of a position in the input; with pairs, the number of its high parts

  CUTE_DEVICE int steps() const { return kernel[0] * kernel[1] * kernel[2] * chunks; }
};

template <class G>
class ConvFinish {
  static constexpr int kSpread = G::kSpread, kChannels = G::kTileN / kSpread;
  static constexpr int kColumns = kChannels / 4;  // channels of a row and phase that a thread holds
  static_assert(kSpread == 1 || kChannels % 32 == 0);
  // kPitch is rounded up, so that a ChannelValues is aligned to its size or to 16 bytes.
  static constexpr int kPitch =
      G::kChannelValues == 0 ? 1 : G::kChannelValues <= 2 ? G::kChannelValues : (G::kChannelValues + 3) / 4 * 4;

 public:
  using ChannelValues = Pack<float, kPitch>;
  using Channels = ChannelValues[2][G::kChannelValues == 0 ? 1 : G::kTileN];  // of each consumer
  static constexpr int kPlaces = 132;  // 128 positions, and padding against bank conflicts
  using Staged = float[2][G::kSlice == 0 ? 1 : G::kSlice][kPlaces];
  using Rows = float[2][G::kRowValues == 0 ? 1 : G::kRowValues][G::kRowValues == 0 ? 1 : 128 * kSpread];

  // Stores f(channel) for the channels of a tile. Does nothing if `tile` is the same as in the
  // previous call.
  template <class Storage, class F>
  CUTE_DEVICE void each_channel(Storage& storage, int tile, F&& f) {
    if (tile == kept_tile_) return;
    kept_tile_ = tile;
    sync();  // now all threads have read the values of the previous tile
    for (int c = threadIdx.x % 128; c < kChannels; c += 128) storage.channels[consumer()][c] = f(c);
    sync();
  }

  // Returns the value that each_channel() stored for channel c of the tile.
  template <class Storage>
  static CUTE_DEVICE ChannelValues channel(Storage& storage, int c) {
    return storage.channels[consumer()][c];
  }

  // Returns the result of reduction number k for a position of the consumer.
  template <class Storage>
  static CUTE_DEVICE float row(Storage& storage, int k, int own) {
    return storage.rows[consumer()][k][own];
  }

 protected:
  // Four lanes share a position; each lane adds a quarter of the channels.
  template <class Accumulator, bool Replaces, class Storage, int Blocks, class O, class P, class R, class V>
  static CUTE_DEVICE void reduce(Storage& storage, int k, int channels,
                                 float (&results)[Blocks][G::kTileN / 2], O&& row_of, P&& place, R&& read,
                                 V&& value) {
    constexpr int kPlaces = 2 * Blocks, kShared = kPlaces * kSpread;  // shared with three lanes
    const int thread = threadIdx.x % 128, top = thread / 32 * 16 + thread % 32 / 4;
    auto const own = [&](int i) { return i / kPlaces * 128 + i % kPlaces / 2 * 64 + top + i % 2 * 8; };
    auto const at = [&](int i) {
      return place(row_of(i % kPlaces / 2, top + i % 2 * 8), 0, own(i));
    };
    sync();  // now all threads have read the previous tile's values
    Accumulator parts[kShared];
    decltype(read(at(0))) rows[kShared];
    CUTE_UNROLL
    for (int i = 0; i < kShared; ++i) rows[i] = read(at(i));
    CUTE_UNROLL
    // Each iteration adds one channel, for which this thread has kShared results.
    for (int pair = 0; pair < kColumns; ++pair) {
      const int channel = pair / 2 * 8 + thread % 4 * 2 + pair % 2, nearest = min(channel, channels - 1);
      CUTE_UNROLL
      for (int i = 0; i < kShared; ++i) {
        float& sum =
            results[i % kPlaces / 2][i / kPlaces * 2 * kColumns + pair / 2 * 4 + i % 2 * 2 + pair % 2];
        float const taken = value(sum, rows[i], nearest, at(i));
        if constexpr (Replaces) sum = taken;
        // A select instead of a branch lets the reads of several channels overlap.
        parts[i].add(channel < channels ? taken : Accumulator().value());
      }
    }
    CUTE_UNROLL
    for (int i = 0; i < kShared; ++i) {
      combine_warp<4>(parts[i]);
      if (thread % 4 == 0) storage.rows[consumer()][k][own(i)] = parts[i].value();
    }
    __syncwarp();  // later reductions of this warp read the stored values
  }

  template <class O, class P, class F>
  static CUTE_DEVICE void each_place(O&& row_of, P&& place, F&& f) {
    const int own = threadIdx.x % 128;
    sync();  // now all threads have stored the results of their reductions
    CUTE_UNROLL
    for (int phase = 0; phase < kSpread; ++phase)
      f(place(row_of(own / 64, own % 64), 0, phase * 128 + own));
  }

  template <class Storage, int Blocks, class O, class P, class R, class V, class F>
  static CUTE_DEVICE void finish(Storage& storage, float const (&results)[Blocks][G::kTileN / 2],
                                 O&& row_of, P&& place, R&& read, V&& value, F&& store) {
    if constexpr (G::kSlice > 0) {
      finish_slices(storage, results, row_of, place, read, value, store);
    } else {
      const int thread = threadIdx.x % 128, channel = thread % 4 * 2, top = thread / 32 * 16 + thread % 32 / 4;
      static_assert(kSpread == 1);
      CUTE_UNROLL
      for (int line = 0; line < 2 * Blocks; ++line) {  // a thread holds parts of these rows
        const int block = line / 2, half = line % 2;
        auto const at = place(row_of(block, top + half * 8), channel, block * 64 + top + half * 8);
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
  // A thread stores the results of one position, kSlice / kSpread channels at a time. With phases, it
  // stores all phases of a position if they are pairs, otherwise one phase of several positions, so
  // that neighbouring threads store neighbouring results.
  template <class Storage, int Blocks, class O, class P, class R, class V, class F>
  static CUTE_DEVICE void finish_slices(Storage& storage, float const (&results)[Blocks][G::kTileN / 2],
                                        O&& row_of, P&& place, R&& read, V&& value, F&& store) {
    static_assert(Blocks == 2, "a thread stores one of 128 positions");
    constexpr int kDepth = G::kSlice / kSpread;  // channels of a slice
    static_assert(kDepth % 8 == 0);
    auto& staged = storage.staged[consumer()];
    const int thread = threadIdx.x % 128, line = thread / 32 * 16 + thread % 32 / 4,
              channel = thread % 4 * 2;
    if constexpr (G::kRowValues > 0) sync();  // `place` may read the results of reductions
    constexpr bool kTakesPhase = !G::kPairs && kSpread > 1 && 128 % kSpread == 0;
    auto const phase_of = [=](int i) { return kTakesPhase ? thread % kSpread : i; };
    auto const position = [=](int i) {
      return kTakesPhase ? i * (128 / kSpread) + thread / kSpread : thread;
    };
    decltype(place(0, 0, 0)) at[kSpread];
    CUTE_UNROLL
    for (int i = 0; i < kSpread; ++i)
      at[i] = place(row_of(position(i) / 64, position(i) % 64), 0, phase_of(i) * 128 + position(i));
    // The reads of a slice overlap with the work on the previous slice.
    decltype(read(0, at[0])) next[G::kSlice];
    CUTE_UNROLL
    for (int i = 0; i < G::kSlice; ++i) next[i] = read(i % kDepth, at[i / kDepth]);
    CUTE_UNROLL
    for (int slice = 0; slice < kChannels; slice += kDepth) {
      sync();  // now all threads have read the previous slice
      CUTE_UNROLL
      for (int i = 0; i < G::kSlice / 2; ++i)
        CUTE_UNROLL
        for (int block = 0; block < Blocks; ++block)
          staged[i / 4 * 8 + channel + i % 2][block * 64 + line + i % 4 / 2 * 8] =
              results[block][i / (kDepth / 2) * (kChannels / 2) + slice / 2 + i % (kDepth / 2)];
      sync();
      decltype(read(0, at[0])) more[G::kSlice];
      CUTE_UNROLL
      for (int i = 0; i < G::kSlice; ++i) {
        more[i] = next[i];
        if (slice + kDepth < kChannels) next[i] = read(slice + kDepth + i % kDepth, at[i / kDepth]);
      }
      decltype(value(0.0f, more[0], 0, at[0])) finished[G::kSlice];
      CUTE_UNROLL
      for (int i = 0; i < G::kSlice; ++i)
        finished[i] = value(staged[phase_of(i / kDepth) * kDepth + i % kDepth][position(i / kDepth)],
                            more[i], slice + i % kDepth, at[i / kDepth]);
      CUTE_UNROLL
      for (int i = 0; i < (G::kPairs ? kDepth : G::kSlice); ++i) {
        if constexpr (G::kPairs) store(finished[i], finished[kDepth + i], slice + i, at[0]);
        else store(finished[i], slice + i % kDepth, at[i / kDepth]);
      }
    }
  }

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
