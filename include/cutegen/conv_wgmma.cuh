// SPDX-License-Identifier: Apache-2.0
// Convolution on Hopper's tensor cores without copied windows (no im2col): for each filter tap,
// wgmma reads the inputs directly from a box of the input (the patch) in shared memory.
//
// Contract: this header needs sm_90a. A CTA computes tiles of G::tile(0) x tile(1) x tile(2)
// positions and G::kTileN output channels. In a transposed convolution with stride s, the results
// at positions t * s + f of an axis form phase f (conv_layout.cuh). All results of a tile have the
// same phase along axes 0 and 1, and the tile has the results of all phases along the last axis.
// Three warps, the producers, load the input box of a tile (the patch) into
// shared memory and round its elements to Element. A fourth warp copies the weights, which
// pack_weights() has put in the order of the wgmma instructions. Two consumer warpgroups multiply.
// A wgmma instruction computes 64 positions: a row of 64, or 8 rows of 8. Sums are floats.
// Producers read four elements at a time if kAligned is set and neighbours in a row are also
// neighbours in the patch; otherwise they read single elements.
//
// With kProducts = 3, the kernel keeps float32 precision: it splits each float into two tf32 terms,
// high and low, and adds low * high + high * low + high * high. Because tensor cores truncate sums
// instead of rounding them, the sums of each stage of weights then start from zero, and the CUDA
// cores add the sums of all stages.
//
// G has the members that conv_layout.cuh lists, and the following ones:
// - Input is the input's type in memory. Element is the type to multiply: float (as tf32), half_t
//   or bfloat16_t.
// - kProducts is the number of products for each multiplication: 1, or 3 for floats.
// - kAligned is true if rows, channels and images begin at multiples of 4 elements, and row lengths
//   are multiples of 4.
// - kTileN is the number of output channels of a tile, kResident the number of CTAs on an SM.
// - kPatches and kWeights are the numbers of pipeline stages for patches and for weights.
// - kRaw is the number of stages that producers copy in advance to shared memory. If kRaw is 0, the
//   producers load the input into registers.
// - kTogether is the number of channels, 2 to 16, whose epilogues overlap.
// - kSlice is the number of channels that write() moves through shared memory at a time. If kSlice
//   is 0, write() takes results from the registers that hold them.
// - kPairs is true if write() stores two neighbouring results at once. kPairs needs kSlice 0 and an
//   even number of phases of the last axis. (Each thread holds all phases of a position.)
// - kRowValues is the number of floats that reduce() keeps for each position, often 0.
// - kChannelValues is the number of floats that each_channel() keeps for each channel, often 0.
// - kKernelX and kDilationX are the kernel's size and dilation along the last axis.
//
// After consume(), all consumer threads call the following functions as the epilogue needs them.
// For these functions (repair(), reduce(), write(), ...), channel 0 is the first channel of the
// tile. `at` is the value that place(x0, x1, x2, row) returned for a position: x0 to x2 are
// relative to the tile's first position (x2 counts the results of all phases), and `row` is the
// index among the consumer's positions. Neighbouring threads have neighbouring positions. Some
// positions of a tile may lie outside the result.
// - repair(f) replaces sums that are NaN or tiny by f(channel, x0, x1, x2). Call repair() first if
//   kAlongX is set or if kGroup does not divide the steps of each phase, because some weights are
//   then zero, and zero times an infinite input is NaN. Also call repair() if kProducts is 3,
//   because the low term of an infinite number is NaN, and the tensor cores ignore the low term of
//   a subnormal number.
// - reduce<Accumulator, Replaces>(storage, k, channels, place, read, value) computes reduction
//   number k over the first `channels` channels, which must all be in this tile. For each position,
//   an Accumulator (reduce.cuh) adds value(sum, rows, channel, at) of each channel in a fixed
//   order. `rows` is read(at), which reduce() calls once for each position. If Replaces is true,
//   the results of value() replace the sums. After reduce(), row(storage, k, row) returns the
//   result of reduction number k.
// - each_channel(storage, tile, f) stores f(channel), a ChannelValues, until `tile` changes.
//   each_channel() also calls f for channels beyond the result. channel(storage, channel) returns
//   the value that each_channel() stored.
// - write(storage, place, read, value, store) calls store(value(sum, read(channel, at), channel,
//   at), channel, at) for each result. It calls place() once for several channels, so place()
//   should compute everything that does not depend on the channel. It processes kTogether channels
//   at a time: first read() for all of them, then value(), and then store(). The order of these
//   calls hides latencies if read() does all loads from DRAM and value() does not branch. write()
//   calls read() and value() also for positions outside the result. Results pass through shared
//   memory, kSlice channels at a time. If kSlice is 0, write() calls place(x0, x1, x2, row, lane),
//   and `channel` is a ConvChannel (conv_result.cuh). `at` must then include `lane`, the first
//   channel of the thread. If kPairs is true, write() calls store(result, next, channel, at).
//
// Example: Conv<G> conv; conv.begin(storage, steps, stages, 1);
//          if (conv.produces()) {
//            for (tile...) conv.produce(input, packed, steps, tile, storage);
//            conv.end(storage);
//          } else for (tile...) {
//            conv.consume(input, steps, tile, storage);
//            conv.repair([&](int channel, int x0, int x1, int x2) { return conv_once<G>(...); });
//            conv.write(storage, [&](int x0, int x1, int x2, int row) { return place; },
//                       [&](int channel, auto const& place) { return bias; },
//                       [&](float sum, float bias, int channel, auto const& place) { return result; },
//                       [&](float result, int channel, auto const& place) { ... });
//          }
#pragma once

#include <cute/arch/copy_sm80.hpp>
#include <cute/arch/copy_sm90_desc.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cute/tensor.hpp>
#include <cutegen/conv_input.cuh>
#include <cutegen/conv_layout.cuh>
#include <cutegen/conv_loads.cuh>
#include <cutegen/conv_result.cuh>
#include <cutegen/reduce.cuh>
#include <cutegen/tf32.cuh>
#include <cutegen/vec.cuh>

namespace cutegen {

template <class G>
struct Conv : ConvShape<G> {
  using S = ConvShape<G>;
  using L = ConvLayout<G>;
  using Storage = typename S::Storage;
  using Mma = typename ConvElement<typename S::Element>::Mma;
  using Loader = cute::conditional_t<S::kRuns, ConvRuns<G>, ConvLoader<G>>;
  static constexpr int kPart = G::kTileN / 2, kSums = S::kBlocks * L::kPhases2;
  using Op = decltype(cute::SM90::GMMA::ss_op_selector<
                      Mma, Mma, float,
                      cute::Shape<cute::_64, cute::Int<G::kTileN>, cute::Int<2 * S::kWidth>>,
                      cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::K>());

  using Sums = decltype(cute::make_tensor<float>(
      cute::Shape<cute::Int<kPart>, cute::Int<kSums>>{}));
  using Partial = decltype(cute::make_tensor<float>(
      cute::Shape<cute::Int<kPart>, cute::Int<S::kBlocks>>{}));
  Sums sums;  // a thread's sums; axis 1 counts blocks of 64 positions and phases

  // All threads must call begin() first. `sets` is the number of different weight sets: groups *
  // tiles along the output channels * phases of axes 0 and 1. If `sets` is 1 and the weights fit in
  // kWeights stages, the weights stay in shared memory.
  template <class Steps>
  CUTE_DEVICE void begin(Storage& storage, Steps const& steps, int stages, int sets) {
    keeps_weights_ =
        sets == 1 && stages * (steps.first[L::kPhases2] - steps.first[0]) <= G::kWeights * G::kGroup;
    if (threadIdx.x == 0) {
      for (int s = 0; s < G::kPatches; ++s) {
        cute::initialize_barrier(storage.patch_full[s], S::kProducers);
        cute::initialize_barrier(storage.patch_empty[s], 4 * S::kConsumers);
      }
      for (int s = 0; s < G::kWeights; ++s) {
        cute::initialize_barrier(storage.weights_full[s], 1);
        cute::initialize_barrier(storage.weights_empty[s], 4 * S::kConsumers);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }

  // Returns whether this thread is a producer. Producers and consumers have separate loops over the
  // tiles, so that neither needs registers for the other's code. The kernel does not use
  // setmaxnreg: 168 registers suffice for 128 results, and ptxas 13.0 spilled or ignored setmaxnreg
  // when we tried it.
  static CUTE_DEVICE bool produces() { return threadIdx.x >= S::kFirstProducer; }

  // Loads the inputs and weights of a tile. Producers may already load the next tile while the
  // consumers still multiply the current one.
  template <class Steps>
  CUTE_DEVICE void produce(ConvInput<typename S::Input> const& input, float const* packed,
                           Steps const& steps, ConvTile const& tile, Storage& storage) {
    const int stages = (input.channels + S::kDepth - 1) / S::kDepth;
    const int first = steps.first[tile.phase * L::kPhases2];
    if (threadIdx.x < S::kFirstProducer + S::kProducers) load(input, tile, stages, storage);
    else if (threadIdx.x == S::kFirstProducer + S::kProducers && !(keeps_weights_ && has_weights_))
      for (int stage = 0; stage < stages; ++stage)
        copy(packed + (int64_t(stage) * steps.first[L::kPhases] + first) * S::kStep,
             steps, tile.phase, storage);
    has_weights_ = true;
  }

  // Producers must call end() after their last tile. end() converts the stages that they copied in
  // advance.
  CUTE_DEVICE void end(Storage& storage) {
    if constexpr (S::kRaw > 0)
      if (threadIdx.x < S::kFirstProducer + S::kProducers)
        while (started_ > 0) convert<0>(storage);
  }

  // Consumers call consume() to multiply a tile. consume() leaves the results in `sums`.
  template <class Steps>
  CUTE_DEVICE void consume(ConvInput<typename S::Input> const& input, Steps const& steps,
                           ConvTile const& tile, Storage& storage) {
    const int stages = (input.channels + S::kDepth - 1) / S::kDepth, phase = tile.phase;
    cute::clear(sums);
    if (keeps_weights_) weight_ = weight_phase_ = 0;
    uint64_t *weights = nullptr, *patch = nullptr;  // stages that a wgmma still reads
    for (int stage = 0; stage < stages; ++stage) {
      cute::wait_barrier(storage.patch_full[patch_], patch_phase_);
      CUTE_UNROLL
      for (int f = 0; f < L::kPhases2; ++f) {
        const int last = steps.first[phase * L::kPhases2 + f + 1];
        for (int s = steps.first[phase * L::kPhases2 + f]; s < last; s += G::kGroup) {
          cute::wait_barrier(storage.weights_full[weight_], weight_phase_);
          if constexpr (S::kTerms == 1) {
            multiply(steps, s, storage, f, sums);
            cute::warpgroup_wait<1>();
            release(weights), release(patch);
            weights = &storage.weights_empty[weight_], patch = nullptr;
          } else {
            promote(steps, s, storage, f);
            release(&storage.weights_empty[weight_]);
          }
          next_weights();
        }
      }
      release(patch);  // releases the previous stage if this stage had no steps
      patch = &storage.patch_empty[patch_];
      next_patch();
    }
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(sums);
    release(weights), release(patch);
  }

  // Replaces sums that are NaN or tiny by f(channel, x0, x1, x2).
  template <class F>
  CUTE_DEVICE void repair(F&& f) {
    bool any = false;
    CUTE_UNROLL
    for (int i = 0; i < kPart * kSums; ++i) any |= lost(sums(i));
    if (!any) return;
    for (int i = 0; i < kPart * kSums; ++i) {  // we do not unroll this loop, because it rarely runs
      float sum = 0;
      CUTE_UNROLL
      for (int j = 0; j < kPart * kSums; ++j) sum = i == j ? sums(j) : sum;
      if (!lost(sum)) continue;
      const int at = staged(i / kPart, i % 4, threadIdx.x % 128);
      const int channel = i % kPart / 4 * 8 + at / S::kPitch;
      sum = call([&](int, int x0, int x1, int x2) { return f(channel, x0, x1, x2); }, at % S::kPitch);
      CUTE_UNROLL
      for (int j = 0; j < kPart * kSums; ++j) sums(j) = i == j ? sum : sums(j);
    }
  }

  // Reduces over the first `channels` channels. Four lanes share a position; each lane adds a
  // quarter of the channels, in a fixed order.
  template <class Accumulator, bool Replaces, class P, class R, class V>
  CUTE_DEVICE void reduce(Storage& storage, int k, int channels, P&& place, R&& read, V&& value) {
    // This thread shares kPlaces positions with three other lanes.
    constexpr int kPlaces = 2 * kSums;
    const int consumer = threadIdx.x / 128, thread = threadIdx.x % 128;
    auto const at = [&](int i) {
      return call([&](int row, int x0, int x1, int x2) { return place(x0, x1, x2, row); },
                  line_place(i / 2, i % 2, thread));
    };
    sync(consumer);  // now all threads have read the previous tile's results
    Accumulator parts[kPlaces];
    decltype(read(at(0))) rows[kPlaces];
    CUTE_UNROLL
    for (int i = 0; i < kPlaces; ++i) rows[i] = read(at(i));
    CUTE_UNROLL
    // Each iteration adds one channel, for which this thread has kPlaces results.
    for (int pair = 0; pair < kPart / 2; ++pair) {
      const int channel = pair / 2 * 8 + thread % 4 * 2 + pair % 2, nearest = min(channel, channels - 1);
      CUTE_UNROLL
      for (int i = 0; i < kPlaces; ++i) {
        float& sum = sums(pair / 2 * 4 + i % 2 * 2 + pair % 2, i / 2);
        float const taken = value(sum, rows[i], nearest, at(i));
        if constexpr (Replaces) sum = taken;
        // A select instead of a branch lets the reads of several channels overlap.
        parts[i].add(channel < channels ? taken : Accumulator().value());
      }
    }
    CUTE_UNROLL
    for (int i = 0; i < kPlaces; ++i) {
      combine_warp<4>(parts[i]);
      if (thread % 4 == 0) rows_of(storage, k)[line_place(i / 2, i % 2, thread)] = parts[i].value();
    }
    __syncwarp();  // later reductions of this warp read the stored values
  }

  // Returns the result of reduction number k for a position. Call row() in read() of later
  // reductions, in each_place() and in write().
  static CUTE_DEVICE float row(Storage& storage, int k, int row) { return rows_of(storage, k)[row]; }

  // ChannelValues holds the values of one channel that the epilogue needs.
  using ChannelValues = Pack<float, S::kChannelPitch == 0 ? 1 : S::kChannelPitch>;

  // Stores f(channel) for the channels of a tile. Does nothing if `tile` is the same as in the
  // previous call.
  template <class F>
  CUTE_DEVICE void each_channel(Storage& storage, int tile, F&& f) {
    if (tile == kept_tile_) return;
    kept_tile_ = tile;
    sync(threadIdx.x / 128);  // now all threads have read the values of the previous tile
    for (int c = threadIdx.x % 128; c < G::kTileN; c += 128) channels_of(storage)[c] = f(c);
    sync(threadIdx.x / 128);
  }

  // Returns the values that each_channel() stored for channel c of the tile.
  static CUTE_DEVICE ChannelValues channel(Storage& storage, int c) {
    return channels_of(storage)[c];
  }

  // Calls f(place(x0, x1, x2, row)) once for each position. Use each_place() if the epilogue
  // computes one result per position, such as a sum over the channels.
  template <class P, class F>
  CUTE_DEVICE void each_place(Storage&, P&& place, F&& f) const {
    sync(threadIdx.x / 128);
    CUTE_UNROLL
    for (int first = 0; first < S::kAll; first += 128) {
      const int e = first + threadIdx.x % 128;
      if (S::kAll % 128 == 0 || e < S::kAll)
        f(call([&](int row, int x0, int x1, int x2) { return place(x0, x1, x2, row); }, e));
    }
  }

  // Calls store(value(sum, read(channel, at), channel, at), channel, at) for each result.
  template <class P, class R, class V, class F>
  CUTE_DEVICE void write(Storage& storage, P&& place, R&& read, V&& value, F&& store) const {
    if constexpr (G::kSlice == 0) write_sums(place, read, value, store);
    else write_staged(storage, place, read, value, store);
  }

 private:
  // Writes results from the registers that hold them. A warp's store covers eight neighbouring
  // positions of four channels.
  template <class P, class R, class V, class F>
  CUTE_DEVICE void write_sums(P&& place, R&& read, V&& value, F&& store) const {
    // The thread writes kNear positions at a time: all phases of positions in one or two blocks.
    constexpr int kPhases = L::kPhases2, kPlaces = 2 * S::kBlocks;
    constexpr int kSteps = kPhases > 2 ? 1 : kPhases == 1 && kPlaces % 4 == 0 ? 4 : 2;
    constexpr int kNear = kSteps * kPhases;
    // The number of channels must divide kPart / 2, which is 2, 4 or a multiple of 8.
    constexpr int kMost = cute::min(kPart / 2, G::kTogether / kNear);
    constexpr int kChannels = kMost >= 8 ? 8 : kMost >= 4 ? 4 : kMost >= 2 ? 2 : 1;
    const int thread = threadIdx.x % 128;
    CUTE_UNROLL
    for (int first = 0; first < kPlaces; first += kSteps) {
      decltype(place(0, 0, 0, 0, 0)) at[kNear];
      CUTE_UNROLL
      for (int i = 0; i < kNear; ++i)
        at[i] = near((first + i / kPhases) / 2 * kPhases + i % kPhases, (first + i / kPhases) % 2, place);
      CUTE_UNROLL
      for (int pair = 0; pair < kPart / 2; pair += kChannels)
        finish_near<kNear, kChannels>(
            [&](int i, int j) {
              const int place = first + i / kPhases, channel = pair + j;
              return sums(channel / 2 * 4 + place % 2 * 2 + channel % 2, place / 2 * kPhases + i % kPhases);
            },
            [&](int j) { return ConvChannel{thread % 4 * 2, (pair + j) / 2 * 8 + (pair + j) % 2}; }, at,
            read, value, store);
    }
  }

  // Writes kChannels channels of kNear positions, as finish() does for one position.
  template <int kNear, int kChannels, class T, class C, class A, class R, class V, class F>
  static CUTE_DEVICE void finish_near(T&& sum, C&& channel, A const& at, R&& read, V&& value, F&& store) {
    decltype(read(channel(0), at[0])) more[kChannels * kNear];
    decltype(value(0.0f, more[0], channel(0), at[0])) results[kChannels * kNear];
    CUTE_UNROLL
    for (int i = 0; i < kChannels * kNear; ++i) more[i] = read(channel(i / kNear), at[i % kNear]);
    CUTE_UNROLL
    for (int i = 0; i < kChannels * kNear; ++i)
      results[i] = value(sum(i % kNear, i / kNear), more[i], channel(i / kNear), at[i % kNear]);
    CUTE_UNROLL
    for (int i = 0; i < kChannels * kNear; i += G::kPairs ? 2 : 1) {
      if constexpr (G::kPairs) store(results[i], results[i + 1], channel(i / kNear), at[i % kNear]);
      else store(results[i], channel(i / kNear), at[i % kNear]);
    }
  }

  // Returns place() for the position of results 0 and 1 (half 0) or 2 and 3 (half 1) of a thread.
  // The coordinates of a thread's positions differ by constants.
  template <class P>
  static CUTE_DEVICE auto near(int sum, int half, P&& place) {
    const int thread = threadIdx.x % 128, first = int(threadIdx.x) / 128 * S::kBlocks;
    const int block = sum / L::kPhases2, phase = sum % L::kPhases2, warp = thread / 32;
    const int row = first / S::kBlocksX + block / S::kLineBlocks;
    const int across = first % S::kBlocksX * S::kAcross + (S::kWide ? 16 * warp : 0) + thread % 32 / 4;
    const int next = block % S::kLineBlocks * S::kAcross + (S::kWide ? 8 * half : 0);
    return place(row / S::kBlocksY, row % S::kBlocksY * S::kDown + (S::kWide ? 0 : 2 * warp + half),
                 across * L::kPhases2 + (next * L::kPhases2 + phase), line_place(sum, half, thread),
                 thread % 4 * 2);
  }

  template <class P, class R, class V, class F>
  CUTE_DEVICE void write_staged(Storage& storage, P&& place, R&& read, V&& value, F&& store) const {
    const int consumer = threadIdx.x / 128, thread = threadIdx.x % 128;
    float* shared = storage.results[consumer];
    constexpr int kAcross = S::kAll % 128 == 0 ? 128 : 64;
    constexpr int kRows = 128 / kAcross;  // the threads write kRows channels at a time
    constexpr int kChannels = G::kSlice / kRows;  // a thread writes kChannels channels of a slice
    constexpr int kTogether = cute::min(G::kTogether, kChannels);
    const int row = thread / kAcross;
    CUTE_UNROLL
    for (int slice = 0; slice < G::kTileN; slice += G::kSlice) {
      sync(consumer);
      CUTE_UNROLL
      for (int eight = 0; eight < G::kSlice / 8; ++eight) {
        CUTE_UNROLL
        for (int sum = 0; sum < kSums; ++sum) {
          CUTE_UNROLL
          for (int i = 0; i < 4; ++i)
            shared[eight * 8 * S::kPitch + staged(sum, i, thread)] = sums(slice / 2 + eight * 4 + i, sum);
        }
      }
      sync(consumer);
      CUTE_UNROLL
      for (int first = 0; first < S::kAll; first += kAcross) {
        const int e = first + thread % kAcross;
        auto const at =
            call([&](int row, int x0, int x1, int x2) { return place(x0, x1, x2, row); }, e);
        // We do not unroll this loop, because a long epilogue would exceed the instruction cache.
        CUTE_NO_UNROLL
        for (int i = 0; i < kChannels; i += kTogether)
          finish<kTogether>([&](int j) { return shared[((i + j) * kRows + row) * S::kPitch + e]; },
                            [&](int j) { return slice + (i + j) * kRows + row; }, at, read, value, store);
      }
    }
  }

  // Writes kTogether channels of one position: finish() first makes all calls of read(), then of
  // value(), then of store().
  template <int kTogether, class T, class C, class A, class R, class V, class F>
  static CUTE_DEVICE void finish(T&& sum, C&& channel, A const& at, R&& read, V&& value, F&& store) {
    decltype(read(0, at)) more[kTogether];
    decltype(value(0.0f, more[0], 0, at)) results[kTogether];
    CUTE_UNROLL
    for (int i = 0; i < kTogether; ++i) more[i] = read(channel(i), at);
    CUTE_UNROLL
    for (int i = 0; i < kTogether; ++i) results[i] = value(sum(i), more[i], channel(i), at);
    CUTE_UNROLL
    for (int i = 0; i < kTogether; ++i) store(results[i], channel(i), at);
  }

  static CUTE_DEVICE bool lost(float sum) {
    return G::kProducts == 3 ? parts_lost(sum) : sum != sum;
  }

  // Returns the offset in shared memory of result i (0 to 3) of a thread for eight channels. The
  // results lie in the order channel, then position.
  static CUTE_DEVICE int staged(int sum, int i, int thread) {
    return (thread % 4 * 2 + i % 2) * S::kPitch + line_place(sum, i / 2, thread);
  }

  // Every four results of a thread belong to two channels of two positions. Returns the index,
  // among the consumer's positions, of the position of results 0 and 1 (half 0) or 2 and 3 (half
  // 1).
  static CUTE_DEVICE int line_place(int sum, int half, int thread) {
    const int block = sum / L::kPhases2, phase = sum % L::kPhases2, run = thread / 32 * 2 + half;
    const int down = block / S::kLineBlocks * S::kDown + (S::kWide ? 0 : run),
              across = block % S::kLineBlocks * S::kAcross + (S::kWide ? 8 * run : 0) + thread % 32 / 4;
    return down * S::kLine + across * L::kPhases2 + phase;
  }

  static CUTE_DEVICE float* rows_of(Storage& storage, int k) {
    return storage.results[threadIdx.x / 128] + S::kStaged + k * S::kAll;
  }

  static CUTE_DEVICE ChannelValues* channels_of(Storage& storage) {
    return reinterpret_cast<ChannelValues*>(rows_of(storage, G::kRowValues));
  }

  // Calls f(at, x0, x1, x2) with the coordinates in the tile of the consumer's position number
  // `at`.
  template <class F>
  static CUTE_DEVICE auto call(F&& f, int at) {
    const int block = int(threadIdx.x) / 128 * S::kBlocks, line = at / S::kLine,
              row = block / S::kBlocksX + line / S::kDown;
    return f(at, row / S::kBlocksY, row % S::kBlocksY * S::kDown + line % S::kDown,
             block % S::kBlocksX * S::kAcross * L::kPhases2 + at % S::kLine);
  }

  static CUTE_DEVICE void sync(int consumer) {
    if (consumer == 0) asm volatile("bar.sync 1, 128;" ::: "memory");
    else asm volatile("bar.sync 2, 128;" ::: "memory");
  }

  CUTE_DEVICE void load(ConvInput<typename S::Input> const& input, ConvTile const& tile, int stages,
                        Storage& storage) {
    Loader loader(input, tile, threadIdx.x - S::kFirstProducer, storage);
    if constexpr (S::kRaw > 0) {
      for (int stage = 0; stage < stages; ++stage) {
        loader.start(stage * S::kDepth, raw_);
        if (++raw_ == S::kRaw) raw_ = 0;
        if (++started_ == S::kRaw) convert<S::kRaw - 1>(storage);
      }
      return;
    }
    for (int stage = 0; stage < stages; ++stage) {
      loader.stage(stage * S::kDepth, storage.patch[patch_], [&] {
        cute::wait_barrier(storage.patch_empty[patch_], patch_phase_ ^ 1);
      });
      cute::tma_store_fence();  // wgmma reads through the asynchronous proxy
      cute::arrive_barrier(storage.patch_full[patch_]);
      next_patch();
    }
  }

  // Converts the oldest stage that the producers copied in advance. The copies of the newest Left
  // stages may still be in flight.
  template <int Left>
  CUTE_DEVICE void convert(Storage& storage) {
    cute::cp_async_wait<Left>();
    cute::wait_barrier(storage.patch_empty[patch_], patch_phase_ ^ 1);
    Loader::convert((raw_ + S::kRaw - started_) % S::kRaw, threadIdx.x - S::kFirstProducer, storage,
                         storage.patch[patch_]);
    cute::tma_store_fence();  // wgmma reads through the asynchronous proxy
    cute::arrive_barrier(storage.patch_full[patch_]);
    next_patch();
    --started_;
  }

  // Copies the weights that a tile needs for one stage of the patch, kGroup steps at a time: each
  // copy fills one stage of weights. `phase` numbers the pairs of phases along axes 0 and 1; all
  // results of the tile have this pair. The tile has the results of all kPhases2 phases along the
  // last axis, and the outer loop visits them. f numbers the phases of all three axes together: f
  // is `phase` * kPhases2 + (phase along the last axis). A stage of weights belongs to one f,
  // because conv_steps() pads the steps of each f to a multiple of kGroup.
  template <class Steps>
  CUTE_DEVICE void copy(float const* from, Steps const& steps, int phase, Storage& storage) {
    for (int f = phase * L::kPhases2; f < (phase + 1) * L::kPhases2; ++f)
      for (int s = steps.first[f]; s < steps.first[f + 1]; s += G::kGroup) {
        constexpr int kBytes = G::kGroup * S::kStep * int(sizeof(float));
        cute::wait_barrier(storage.weights_empty[weight_], weight_phase_ ^ 1);
        cute::set_barrier_transaction_bytes(storage.weights_full[weight_], kBytes);
        cute::SM90_BULK_COPY_G2S::copy(from, &storage.weights_full[weight_],
                                       storage.weights[weight_], kBytes);
        from += G::kGroup * S::kStep;
        next_weights();
      }
  }

  static CUTE_DEVICE void release(uint64_t* empty) {
    if (empty == nullptr) return;
    __syncwarp();
    if (threadIdx.x % 32 == 0) cute::arrive_barrier(*empty);
  }

  // Multiplies with a stage of weights, starting from zero, and adds the new sums to `sums`.
  template <class Steps>
  CUTE_DEVICE void promote(Steps const& steps, int first, Storage& storage, int phase) {
    Partial partial;
    multiply(steps, first, storage, 0, partial);
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(partial);
    CUTE_UNROLL
    for (int block = 0; block < S::kBlocks; ++block) {
      CUTE_UNROLL
      for (int i = 0; i < kPart; ++i)
        sums(i, block * L::kPhases2 + phase) += partial(i, block);
    }
  }

  // Issues the wgmma instructions of a stage of weights for all blocks of the consumer. `to` holds
  // the sums of all phases or, with three products, partial sums of one phase that start from zero.
  template <class Steps, class To>
  CUTE_DEVICE void multiply(Steps const& steps, int first, Storage& storage, int phase, To& to) {
    constexpr bool kFromZero = S::kTerms == 2;
    constexpr int kPhases = kFromZero ? 1 : L::kPhases2;
    constexpr uint32_t kLow = G::kPlanes * L::kCells, kLowWeights = 2 * G::kTileN;
    const uint32_t patch = cute::cast_smem_ptr_to_uint(storage.patch[patch_]) >> 4,
                   weights = cute::cast_smem_ptr_to_uint(storage.weights[weight_]) >> 4;
    const int consumer = threadIdx.x / 128;
    cute::MMA_Atom<Op> atom;
    atom.accumulate_ =
        kFromZero ? cute::SM90::GMMA::ScaleOut::Zero : cute::SM90::GMMA::ScaleOut::One;
    cute::warpgroup_fence_operand(to);
    cute::warpgroup_arrive();
    CUTE_UNROLL
    for (int s = 0; s < G::kGroup; ++s) {
      const uint32_t input = patch + steps.input[first + s];
      const uint32_t weight = weights + s * (S::kStep / 4) + (G::kTileN << 16);
      auto const b = operand(weight, 8);
      CUTE_UNROLL
      for (int block = 0; block < S::kBlocks; ++block) {
        const uint32_t start = input + origin(consumer * S::kBlocks + block);
        auto&& sum = to(cute::_, block * kPhases + phase);
        if constexpr (S::kTerms == 2) {
          atom.accumulate_ =
              s == 0 ? cute::SM90::GMMA::ScaleOut::Zero : cute::SM90::GMMA::ScaleOut::One;
          cute::gemm(atom, operand(start + kLow, rows()), b, sum);
          atom.accumulate_ = cute::SM90::GMMA::ScaleOut::One;
          cute::gemm(atom, operand(start, rows()), operand(weight + kLowWeights, 8), sum);
        }
        cute::gemm(atom, operand(start, rows()), b, sum);
      }
    }
    cute::warpgroup_commit_batch();
  }

  // Returns where the inputs of a block (the 64 positions of a wgmma instruction) begin in an input
  // box, in 16-byte cells.
  static CUTE_DEVICE int origin(int block) {
    const int x = block % S::kBlocksX * S::kAcross, y = block / S::kBlocksX % S::kBlocksY * S::kDown,
              z = block / (S::kBlocksX * S::kBlocksY);
    return (z * L::kSize1 + y) * L::kSize2 + x;
  }
  // Returns the distance between groups of eight neighbouring positions in shared memory, in cells
  // of 16 bytes.
  static constexpr CUTE_DEVICE int rows() { return S::kWide ? 8 : L::kSize2; }

  // Returns the descriptor of an operand without swizzle. All arguments of operand() count units of
  // 16 bytes. The low half of `start` is the address, the high half the distance between the two
  // cells of a step. `distance` is the distance from eight rows to the next eight.
  static CUTE_DEVICE auto operand(uint32_t start, uint32_t distance) {
    cute::GmmaDescriptor descriptor;
    descriptor.desc_ = uint64_t(distance) << 32 | start;
    return cute::make_tensor(cute::SM90::GMMA::DescriptorIterator{descriptor},
                             cute::Layout<cute::_1>{});
  }

  CUTE_DEVICE void next_patch() {
    if (++patch_ == G::kPatches) patch_ = 0, patch_phase_ ^= 1;
  }
  CUTE_DEVICE void next_weights() {
    if (++weight_ == G::kWeights) weight_ = 0, weight_phase_ ^= 1;
  }

  int patch_ = 0, patch_phase_ = 0, weight_ = 0, weight_phase_ = 0;  // positions in the rings
  int raw_ = 0, started_ = 0;  // next buffer of Storage::raw; number of unconverted stages
  int kept_tile_ = -1;
  bool keeps_weights_ = false, has_weights_ = false;
};

// Computes one result in float on the CUDA cores. The function weight(input channel, k0, k1, k2)
// must return a weight.
template <class G, class F>
CUTE_DEVICE float conv_once(ConvInput<typename G::Input> const& input, int64_t image, int group,
                            int y0, int y1, int y2, F&& weight) {
  using L = ConvLayout<G>;
  using Round = ConvElement<typename G::Element>;
  typename G::Input const* from = input.data + image * input.image_stride +
                                  int64_t(group) * input.channels * input.channel_stride;
  auto source = [](int axis, int y, int tap) {  // returns an input position or -1
    const ConvAxis a = G::axis(axis);
    const int distance = tap * (axis == 2 ? G::kDilationX : a.dilation);
    if (!a.transposed) return y * a.stride - a.padding + distance;
    const int at = y + a.padding - distance;
    return at >= 0 && at % a.stride == 0 ? at / a.stride : -1;
  };
  float sum = 0;
  for (int channel = 0; channel < input.channels; ++channel)
    for (int k0 = 0; k0 < L::kKernel0; ++k0)
      for (int k1 = 0; k1 < L::kKernel1; ++k1)
        for (int k2 = 0; k2 < G::kKernelX; ++k2) {
          const int x0 = source(0, y0, k0), x1 = source(1, y1, k1), x2 = source(2, y2, k2);
          if (unsigned(x0) >= unsigned(input.size[0]) || unsigned(x1) >= unsigned(input.size[1]) ||
              unsigned(x2) >= unsigned(input.size[2]))
            continue;
          const float x = to_float(from[int64_t(channel) * input.channel_stride +
                                        x0 * input.stride[0] + x1 * input.stride[1] +
                                        x2 * input.stride[2]]);
          const float w = to_float(weight(channel, k0, k1, k2));
          if constexpr (G::kProducts == 3) sum = fmaf(x, w, sum);
          else sum = fmaf(to_float(Round::round(x)), to_float(Round::round(w)), sum);
        }
  return sum;
}

// Returns element `index` of the packed weights. The function weight(group, channel out, channel
// in, k0, k1, k2) must return an unpacked weight. The order of the packed weights is group, tile of
// channels, stage of the depth, step, term, cell, channel, element of the cell.
template <class G, class Steps, class F>
CUTE_DEVICE typename G::Element pack_weights(Steps const& steps, int64_t index, int tiles,
                                             int stages, int channels_out, int channels_in,
                                             F&& weight) {
  using S = ConvShape<G>;
  using L = ConvLayout<G>;
  const int v = int(index % S::kWidth), n = int(index / S::kWidth % G::kTileN);
  int64_t rest = index / (S::kWidth * G::kTileN);
  const int cell_of_step = int(rest % 2), term = int(rest / 2 % S::kTerms);
  rest /= 2 * S::kTerms;
  const int all = steps.first[L::kPhases], cell = steps.cell[2 * (rest % all) + cell_of_step];
  rest /= all;
  const int stage = int(rest % stages), tile = int(rest / stages % tiles),
            group = int(rest / stages / tiles);
  const int k2 = cell % L::kKernel2, k1 = cell / L::kKernel2 % L::kKernel1,
            k0 = cell / (L::kKernel2 * L::kKernel1) % L::kKernel0,
            plane = cell / (L::kKernel2 * L::kKernel1 * L::kKernel0);
  const int out = tile * G::kTileN + n,
            in = stage * S::kDepth + (G::kAlongX ? plane : plane * S::kWidth + v),
            along = G::kAlongX ? k2 * S::kWidth + v : k2;
  const bool inside = cell >= 0 && out < channels_out && in < channels_in && along < G::kKernelX;
  return conv_term<typename G::Element>(
      inside ? to_float(weight(group, out, in, k0, k1, along)) : 0.0f, term);
}

}  // namespace cutegen
