// SPDX-License-Identifier: Apache-2.0
// Loads a patch, the part of the input that a tile of results needs, into shared memory. The
// producer threads of conv_wgmma.cuh use this file. The comment at the top of conv_layout.cuh
// explains patches, planes, cells and phases.
//
// Contract: this header needs sm_90a. ConvShape<G> has the sizes that follow from ConvLayout<G>.
// ConvLoader copies single elements. ConvRuns copies runs, which are four neighbouring elements of
// a row. ConvLoader and ConvRuns write zeros outside the input, and round elements to the type that
// the tensor cores multiply.
//
// Example: ConvRuns<G> runs(...); see Conv::produce() in conv_wgmma.cuh
#pragma once

#include <cute/arch/copy_sm80.hpp>
#include <cute/tensor.hpp>
#include <cutegen/conv_input.cuh>
#include <cutegen/conv_layout.cuh>
#include <cutegen/tf32.cuh>
#include <cutegen/vec.cuh>

namespace cutegen {

template <class G>
struct ConvShape : ConvLayout<G> {
  using L = ConvLayout<G>;
  using Input = typename G::Input;
  using Element = typename G::Element;
  static constexpr int kConsumers = 2, kFirstProducer = 128 * kConsumers;
  static constexpr int kProducers = 96, kThreads = kFirstProducer + kProducers + 32;
  static constexpr int kWidth = 16 / sizeof(Element);  // elements of a 16-byte cell
  static constexpr int kDepth = G::kAlongX ? G::kPlanes : G::kPlanes * kWidth;  // a stage's channels
  static constexpr bool kWide = G::tile(2) % 64 == 0;
  static constexpr int kAcross = kWide ? 64 : 8, kDown = 64 / kAcross;  // a block's shape
  static constexpr int kBlocksX = G::tile(2) / kAcross, kBlocksY = G::tile(1) / kDown;
  static constexpr int kBlocks = kBlocksX * kBlocksY * G::tile(0) / kConsumers;  // for each consumer
  static constexpr int kResults = kBlocks * L::kPhases2 * G::kTileN / 2;         // for each thread
  static_assert(kBlocks * kConsumers == kBlocksX * kBlocksY * G::tile(0));
  static_assert(kBlocks % kBlocksX == 0 || kBlocksX % kBlocks == 0, "a consumer has whole rows");
  static_assert(kResults <= 128 && (G::kSlice == 0 || G::kTileN % G::kSlice == 0) && G::kSlice % 8 == 0);
  // A consumer warpgroup computes kLines rows of kLine results.
  static constexpr int kLineBlocks = kBlocks < kBlocksX ? kBlocks : kBlocksX;
  static constexpr int kLine = kLineBlocks * kAcross * L::kPhases2;
  static constexpr int kLines = kBlocks / kLineBlocks * kDown, kAll = kLine * kLines;
  static constexpr int kPitch = kAll + 4;
  static constexpr int kCells = (L::kCells + kProducers - 1) / kProducers * kProducers;
  static constexpr int kTerms = G::kProducts == 3 ? 2 : 1;  // a value consists of kTerms terms
  static constexpr int kStep = 8 * G::kTileN * kTerms;      // a step's weights have kStep floats
  // A consumer warpgroup has kKept floats in shared memory: results that write() moves, then
  // results of reductions, then values of channels.
  static constexpr int kStaged = G::kSlice * kPitch;
  static constexpr int kChannelPitch =
      G::kChannelValues <= 2 ? G::kChannelValues : (G::kChannelValues + 3) / 4 * 4;
  static constexpr int kKept = kStaged + G::kRowValues * kAll + G::kTileN * kChannelPitch;
  // kRunsOfLine runs of four elements cover a row of a patch (input box). The first run of a row
  // begins kSkew elements before the row.
  static constexpr ConvAxis kLast = G::axis(2);
  static constexpr bool kRuns = G::kAligned && !G::kAlongX && G::tile(2) % 4 == 0 &&
                                (kLast.transposed || kLast.stride == 1);
  static constexpr int kSkew = (kLast.front() % 4 + 4) % 4, kRunsOfLine = (kSkew + L::kSize2 + 3) / 4;
  static constexpr int kRunLines = L::kClasses0 * L::kClasses1 * L::kSize0 * L::kSize1;  // a plane's rows
  static constexpr int kRunRounds =
      (G::kPlanes * kRunLines * kRunsOfLine + kProducers - 1) / kProducers;
  // Producers copy kRaw stages of kRawCells cells in advance to `raw`. kRaw is 0 if producers copy
  // single 16-bit elements, because an asynchronous copy moves at least 4 bytes.
  static constexpr int kRaw = kRuns || sizeof(Input) == 4 ? G::kRaw : 0;
  static constexpr int kRawCells = kRuns ? kRunRounds * kProducers * 4 : G::kPlanes * kCells;
  using Run = Pack<Input, 4>;
  static_assert(kTerms == 1 || (sizeof(Element) == 4 && kResults + kBlocks * G::kTileN / 2 <= 128));

  struct alignas(128) Storage {
    uint4 patch[G::kPatches][kTerms][G::kPlanes][L::kCells];
    float weights[G::kWeights][G::kGroup * kStep];
    float results[kConsumers][kKept > 0 ? kKept : 1];
    uint4 raw[kRaw > 0 ? kRaw * kRawCells : 1];
    int place[kCells];                              // a cell's offset in its channel, or -1
    uint8_t inside[G::kAlongX ? kCells : 4];        // mask of elements inside the input
    uint64_t patch_full[G::kPatches], patch_empty[G::kPatches];
    uint64_t weights_full[G::kWeights], weights_empty[G::kWeights];
  };
};

// Returns the address of the first channel of the tile's group in the tile's image.
template <class Input>
CUTE_DEVICE Input const* conv_group(ConvInput<Input> const& input, ConvTile const& tile) {
  return input.data + tile.image * input.image_stride +
         int64_t(tile.group) * input.channels * input.channel_stride;
}

// Starts to copy 4, 8 or 16 bytes to shared memory; writes zeros if `inside` is false.
template <class Input, class T>
CUTE_DEVICE void conv_copy(Input const* from, bool inside, T& to) {
  const uint32_t address = cute::cast_smem_ptr_to_uint(&to);
  const int bytes = inside ? int(sizeof(T)) : 0;
  if constexpr (sizeof(T) == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(address), "l"(from), "r"(bytes),
                 "n"(int(sizeof(T)))
                 : "memory");
}

// Returns the coordinate in the input, along axis i, of position x in the input box of class `cls`.
template <class G>
CUTE_DEVICE int conv_input(ConvTile const& tile, int i, int x, int cls) {
  const ConvAxis axis = G::axis(i);
  return axis.transposed ? tile.first[i] + x + axis.front()
                         : (tile.first[i] + x) * axis.stride + axis.remainder(cls) - axis.padding;
}

// Loads a patch (input box) element by element. Each producer thread loads its own 16-byte cells.
template <class G>
class ConvLoader {
  using S = ConvShape<G>;
  using L = ConvLayout<G>;
  using Input = typename S::Input;
  static constexpr int kEach = S::kCells / S::kProducers;  // a thread loads kEach cells of a plane
  static constexpr int kRound = kEach < 16 / S::kWidth ? kEach : 16 / S::kWidth;
  static constexpr int kRounds = (kEach + kRound - 1) / kRound;
  using Values = Input[kRound][S::kWidth];

 public:
  CUTE_DEVICE ConvLoader(ConvInput<Input> const& input, ConvTile const& tile, int thread,
                         typename S::Storage& storage)
      : input_(input), from_(conv_group(input, tile)), thread_(thread), storage_(storage) {
    for (int i = 0; i < kEach; ++i) place(tile, i * S::kProducers + thread);
  }

  // Loads the planes of one stage, from the channel `first` on.
  template <class Wait>
  CUTE_DEVICE void stage(int first, uint4 (&to)[S::kTerms][G::kPlanes][L::kCells], Wait&& wait) {
    Values values, next;
    fetch(first, 0, values);
    wait();
    for (int plane = 0; plane < G::kPlanes; ++plane) {
      CUTE_UNROLL
      for (int round = 0; round < kRounds; ++round) {
        const bool more = round + 1 < kRounds;
        if (more || plane + 1 < G::kPlanes)
          fetch(more ? first : first + kStep, more ? round + 1 : 0, next);
        put(to, plane, round, values);
        CUTE_UNROLL
        for (int i = 0; i < kRound * S::kWidth; ++i)
          values[i / S::kWidth][i % S::kWidth] = next[i / S::kWidth][i % S::kWidth];
      }
      first += kStep;
    }
  }

  // Starts to copy one stage to buffer number `slot` of Storage::raw. The thread that copies an
  // element must also convert it.
  CUTE_DEVICE void start(int first, int slot) const {
    for (int plane = 0; plane < G::kPlanes; ++plane) {
#pragma unroll 4
      for (int i = 0; i < kEach; ++i)
        each(first + plane * kStep, i, [&](int v, Input const* from, bool inside) {
          conv_copy(inside ? from : input_.data, inside, raw(storage_, slot, plane, i, v, thread_));
        });
    }
    cute::cp_async_fence();
  }

  // Converts the stage in buffer number `slot`. The copies to this buffer must have arrived.
  static CUTE_DEVICE void convert(int slot, int thread, typename S::Storage& storage,
                                  uint4 (&to)[S::kTerms][G::kPlanes][L::kCells]) {
    for (int plane = 0; plane < G::kPlanes; ++plane) {
#pragma unroll 4
      for (int i = 0; i < kEach; ++i) {
        Input values[S::kWidth];
        CUTE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) values[v] = raw(storage, slot, plane, i, v, thread);
        put_cell(to, plane, i * S::kProducers + thread, values);
      }
    }
  }

 private:
  static constexpr int kStep = G::kAlongX ? 1 : S::kWidth;  // a plane has kStep channels

  static CUTE_DEVICE Input& raw(typename S::Storage& storage, int slot, int plane, int i, int v,
                                int thread) {
    return reinterpret_cast<Input*>(storage.raw + slot * S::kRawCells)[
        ((plane * kEach + i) * S::kWidth + v) * S::kProducers + thread];
  }

  // Computes the offset at which a cell begins in its channel.
  CUTE_DEVICE void place(ConvTile const& tile, int cell) {
    const int box = cell / L::kBox, at = cell % L::kBox;
    const int cls[3] = {box / (L::kClasses1 * L::kClasses2), box / L::kClasses2 % L::kClasses1,
                        box % L::kClasses2};
    const int x[3] = {at / (L::kSize1 * L::kSize2), at / L::kSize2 % L::kSize1, at % L::kSize2};
    int offset = 0;
    bool inside = cell < L::kCells;
    CUTE_UNROLL
    for (int i = 0; i < 3; ++i) {
      const int input = conv_input<G>(tile, i, x[i], cls[i]);
      offset += input * input_.stride[i];
      if (!G::kAlongX || i < 2) inside &= unsigned(input) < unsigned(input_.size[i]);
      else storage_.inside[cell] = inside ? elements(input) : 0;
    }
    storage_.place[cell] = inside || G::kAlongX ? offset : -1;
  }

  // Returns a bit mask of the cell's elements along the last axis that lie inside the input.
  CUTE_DEVICE unsigned elements(int input) const {
    unsigned mask = 0;
    CUTE_UNROLL
    for (int v = 0; v < S::kWidth; ++v)
      mask |= unsigned(unsigned(input + v * G::kDilationX) < unsigned(input_.size[2])) << v;
    return mask;
  }

  // Calls f(v, address, inside) for each element v of this thread's i-th cell. `inside` is true if
  // the element lies inside the input.
  template <class F>
  CUTE_DEVICE void each(int channel, int i, F&& f) const {
    Input const* plane = from_ + int64_t(channel) * input_.channel_stride;
    const int left = input_.channels - channel, cell = i * S::kProducers + thread_;
    const int offset = storage_.place[cell];
    const unsigned mask = G::kAlongX ? storage_.inside[cell] : 0;
    CUTE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      const bool inside = G::kAlongX ? (mask >> v & 1) && left > 0 : offset >= 0 && v < left;
      const int step = G::kAlongX ? G::kDilationX * input_.stride[2] : input_.channel_stride;
      f(v, plane + (offset + v * step), inside);
    }
  }

  CUTE_DEVICE void fetch(int channel, int round, Values& values) const {
    CUTE_UNROLL
    for (int i = 0; i < kRound; ++i) {
      if (round * kRound + i >= kEach) break;
      each(channel, round * kRound + i, [&](int v, Input const* from, bool inside) {
        values[i][v] = inside ? *from : Input(0);
      });
    }
  }

  CUTE_DEVICE void put(uint4 (&to)[S::kTerms][G::kPlanes][L::kCells], int plane, int round,
                       Values const& values) const {
    CUTE_UNROLL
    for (int i = 0; i < kRound; ++i) {
      if (round * kRound + i >= kEach) break;
      put_cell(to, plane, (round * kRound + i) * S::kProducers + thread_, values[i]);
    }
  }

  static CUTE_DEVICE void put_cell(uint4 (&to)[S::kTerms][G::kPlanes][L::kCells], int plane, int cell,
                                   Input const (&values)[S::kWidth]) {
    if (cell >= L::kCells) return;
    CUTE_UNROLL
    for (int term = 0; term < S::kTerms; ++term) {
      Pack<typename S::Element, S::kWidth> pack;
      CUTE_UNROLL
      for (int v = 0; v < S::kWidth; ++v)
        pack.element[v] = conv_element<typename S::Element>(values[v], term);
      *reinterpret_cast<decltype(pack)*>(&to[term][plane][cell]) = pack;
    }
  }

  ConvInput<Input> const& input_;
  Input const* from_;
  int thread_;
  typename S::Storage& storage_;
};

// Loads a patch (the input box of a tile) in runs of four neighbouring elements of a row. A thread
// loads a run for all channels of a cell, so that the thread holds four whole cells. A plane has
// the cells of one group of channels; the producer threads divide the runs of all planes among
// themselves.
template <class G>
class ConvRuns {
  using S = ConvShape<G>;
  using L = ConvLayout<G>;
  using Input = typename S::Input;
  using Run = typename S::Run;
  static constexpr int kRuns = S::kRunLines * S::kRunsOfLine, kAll = G::kPlanes * kRuns;
  static constexpr int kRounds = S::kRunRounds;
  static constexpr int kAhead = 2;  // a thread loads kAhead rounds in advance

 public:
  CUTE_DEVICE ConvRuns(ConvInput<Input> const& input, ConvTile const& tile, int thread,
                       typename S::Storage& storage)
      : input_(input), from_(conv_group(input, tile)), thread_(thread), storage_(storage) {
    sync();  // now all threads have used the positions of the previous tile
    for (int run = thread; run < kRuns; run += S::kProducers) storage.place[run] = place(tile, run);
    sync();
  }

  // Loads the planes of one stage, from the channel `first` on.
  template <class Wait>
  CUTE_DEVICE void stage(int first, uint4 (&to)[S::kTerms][G::kPlanes][L::kCells], Wait&& wait) {
    Run runs[kAhead + 1][S::kWidth];
    CUTE_UNROLL
    for (int round = 0; round < kAhead; ++round) fetch(first, round, runs[round]);
    wait();
    for (int begin = 0; begin < kRounds; begin += kAhead + 1) {
      CUTE_UNROLL
      for (int i = 0; i < kAhead + 1; ++i) {
        fetch(first, begin + i + kAhead, runs[(i + kAhead) % (kAhead + 1)]);
        put(to, begin + i, thread_, runs[i]);
      }
    }
  }

  // Starts to copy one stage to buffer number `slot` of Storage::raw. The thread that copies a run
  // must also convert it; the copies then need no barrier.
  CUTE_DEVICE void start(int first, int slot) const {
    for (int round = 0; round < kRounds; ++round) {
      const int at = round * S::kProducers + thread_;
      if (at >= kAll) break;
      const int offset = storage_.place[at % kRuns], channel = first + at / kRuns * S::kWidth;
      const int left = offset < 0 ? 0 : input_.channels - channel;
      Input const* from = from_ + int64_t(channel) * input_.channel_stride + offset;
      CUTE_UNROLL
      for (int v = 0; v < S::kWidth; ++v)
        conv_copy(v < left ? from + v * int64_t(input_.channel_stride) : input_.data, v < left,
                  raw(storage_, slot, round, v, thread_));
    }
    cute::cp_async_fence();
  }

  // Converts the stage in buffer number `slot`. The copies to this buffer must have arrived.
  static CUTE_DEVICE void convert(int slot, int thread, typename S::Storage& storage,
                                  uint4 (&to)[S::kTerms][G::kPlanes][L::kCells]) {
    for (int round = 0; round < kRounds; ++round) {
      Run runs[S::kWidth];
      CUTE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) runs[v] = raw(storage, slot, round, v, thread);
      put(to, round, thread, runs);
    }
  }

 private:
  static CUTE_DEVICE Run& raw(typename S::Storage& storage, int slot, int round, int v, int thread) {
    return reinterpret_cast<Run*>(storage.raw + slot * S::kRawCells)[(round * S::kWidth + v) *
                                                                         S::kProducers + thread];
  }

  static CUTE_DEVICE void sync() { asm volatile("bar.sync 3, %0;" ::"n"(S::kProducers) : "memory"); }

  // Returns the offset of a run in its channel, or -1 if the run lies outside the input. No run
  // lies partly outside the input.
  CUTE_DEVICE int place(ConvTile const& tile, int run) const {
    const int line = run / S::kRunsOfLine, box = line / (L::kSize0 * L::kSize1);
    const int x0 = line / L::kSize1 % L::kSize0, x1 = line % L::kSize1;
    const int i0 = conv_input<G>(tile, 0, x0, box / L::kClasses1),
              i1 = conv_input<G>(tile, 1, x1, box % L::kClasses1),
              i2 = conv_input<G>(tile, 2, run % S::kRunsOfLine * 4 - S::kSkew, 0);
    const bool inside = unsigned(i0) < unsigned(input_.size[0]) &&
                        unsigned(i1) < unsigned(input_.size[1]) &&
                        unsigned(i2) < unsigned(input_.size[2]);
    return inside ? i0 * input_.stride[0] + i1 * input_.stride[1] + i2 : -1;
  }

  CUTE_DEVICE void fetch(int first, int round, Run (&to)[S::kWidth]) const {
    const int at = round * S::kProducers + thread_;
    const int offset = at < kAll ? storage_.place[at % kRuns] : -1;
    const int channel = first + at / kRuns * S::kWidth;
    const int left = offset < 0 ? 0 : input_.channels - channel;
    Input const* from = from_ + int64_t(channel) * input_.channel_stride + offset;
    CUTE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      to[v] = Run{};
      if (v < left) to[v] = *reinterpret_cast<Run const*>(from + v * int64_t(input_.channel_stride));
    }
  }

  static CUTE_DEVICE void put(uint4 (&to)[S::kTerms][G::kPlanes][L::kCells], int round, int thread,
                              Run const (&runs)[S::kWidth]) {
    const int at = round * S::kProducers + thread, run = at % kRuns;
    if (at >= kAll) return;
    const int x = run % S::kRunsOfLine * 4 - S::kSkew, line = run / S::kRunsOfLine * L::kSize2;
    CUTE_UNROLL
    for (int e = 0; e < 4; ++e) {
      CUTE_UNROLL
      for (int term = 0; term < S::kTerms; ++term) {
        Pack<typename S::Element, S::kWidth> cell;
        CUTE_UNROLL
        for (int v = 0; v < S::kWidth; ++v)
          cell.element[v] = conv_element<typename S::Element>(runs[v].element[e], term);
        if (unsigned(x + e) < unsigned(L::kSize2))
          *reinterpret_cast<decltype(cell)*>(&to[term][at / kRuns][line + x + e]) = cell;
      }
    }
  }

  ConvInput<Input> const& input_;
  Input const* from_;
  int thread_;
  typename S::Storage& storage_;
};

}  // namespace cutegen
