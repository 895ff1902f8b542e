// SPDX-License-Identifier: Apache-2.0
// Convolution of a channels-last input on Hopper's tensor cores, from patches of the input in
// shared memory. TMA loads the input of a tile (its patch) once for all filter taps that have the
// same index on the first axis, and wgmma reads the rows of each tap directly from the patch.
//
// Contract: the layouts of input and weights, and Element, are as in conv_rows.cuh. The stride is 1.
//
// A patch has a line of 128 bytes for each position. A line holds kDepth channels (a chunk). TMA
// writes the lines of neighbouring positions one after the other and swizzles them by their
// addresses. wgmma computes the swizzle from addresses, too. Therefore, a tap's first row may be
// any line of the patch: a descriptor with base offset 0 may start inside the swizzle pattern, as
// docs/measurements/windows.md shows on an H200.
//
// A tile has kTileM positions. wgmma computes blocks of 64 positions: 8 lines of 8 positions (kAcross
// 8), or 64 positions of a line (kAcross 64). The parts of a tile outside the image are wasted. With
// kAcross 1, a tile joins lines: an image has strips of kStrip columns, and a line of a patch has
// kColumns places, for these columns and for those that filter taps add. A tile has kTileM places,
// one line after the other, so that neighbouring threads store neighbouring results even if a line
// is short. The places after a line's kStrip columns are wasted.
//
// - With kTileM 128, two consumer warpgroups take turns: while one multiplies a tile, the other
//   runs the epilogue of another tile (the work after the convolution). With kTileM 256, both
//   compute one tile together, so that each step of weights (a filter tap with kDepth channels, see
//   conv_rows.cuh) serves 256 positions instead of 128.
// - With kKept above 0, weights stay in shared memory for all tiles of a CTA. There must then be at
//   most kTileN output channels and kKept steps.
// - kPatches and kStages are the numbers of pipeline stages for patches and for steps of weights.
// - kKernel[i] and kDilation[i] are the kernel's size and dilation on axis i + 1. They are constants,
//   because the kernel unrolls the loop over the filter taps of a patch.
//
// A transposed convolution with stride s on an axis is s convolutions, its phases: phase f computes
// the results at positions q * s + f, and each phase has some of the filter taps. The window has the
// positions q of a phase and the union of the filter taps of all phases.
//
// - A tile has all phases of the last axis, so that a thread stores neighbouring results. G::kSpread
//   is their number. The columns of a tile, and the rows of the packed weights, have the order
//   (tile of channels, phase, channel). The weights of taps that a phase lacks are zero.
// - G::kPhases is the number of phases of the other axes. Bit i of G::taps(phase) is set if the phase
//   has filter tap i. The packed weights have window.filters rows for each of these phases. If kSpread
//   or kPhases is above 1, kKept must be 0.
//
// With G::kParts 2, the operands are pairs of half_t (HalfPair), and the results are as accurate as
// float32. Each step adds low * high, high * low and high * high; low * low is about 2^-22 of the
// result. Tensor cores truncate their sums, so the sums of high * high start at zero in each step, and
// the CUDA cores add them to the results in float32. The sums of the other products may be truncated,
// because they are small. kTileN is at most 64, so that all sums stay in registers. kKept must be 0.
// With kJoined, there are at most 32 input channels, and both parts lie in the same lines.
//
// The functions of ConvPatches do the same as the functions of ConvRows (conv_rows.cuh).
//
// Example: ConvPatches<G> conv; conv.begin(storage);
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

#include <cutegen/conv_rows.cuh>

namespace cutegen {

// A RingPlace is a position in a ring of pipeline stages, with the parity of the stage's barriers.
template <int Stages>
struct RingPlace {
  int stage = 0, phase = 0;
  CUTE_DEVICE void advance() {
    if (++stage == Stages) stage = 0, phase ^= 1;
  }
  CUTE_DEVICE void advance(int steps) {
    const int at = stage + steps;
    phase ^= at / Stages % 2;
    stage = at % Stages;
  }
};

// PatchTiles divides a convolution into tiles, and loads and multiplies their operands.
template <class G>
struct PatchTiles {
  using Element = typename G::Element;
  // A tile has kTall x kBeside blocks, one column of blocks after the other.
  static constexpr bool kJoinsLines = G::kAcross == 1;
  static constexpr int kDown = kJoinsLines ? 1 : 64 / G::kAcross;
  static constexpr int kBeside = G::kSpatial == 1 ? 2 : G::kTileM == 256 && G::kAcross == 8 ? 2 : 1;
  static constexpr int kTall = G::kTileM / 64 / kBeside;
  static constexpr int kHeight = kTall * kDown,
                       kWidth = kJoinsLines ? G::kStrip : kBeside * G::kAcross;  // positions
  static constexpr int kReach[2] = {(G::kKernel[0] - 1) * G::kDilation[0],
                                    (G::kKernel[1] - 1) * G::kDilation[1]};
  static constexpr int kColumns = kWidth + kReach[1];
  // If a tile joins lines, its first place may be the last one of a line.
  static constexpr int kLines =
      kReach[0] +
      (kJoinsLines ? 1 + (G::kTileM - 1 + kReach[1] + kColumns - 1) / kColumns : kHeight);
  static_assert(G::kTileM == 128 || G::kTileM == 256);
  static_assert(G::kAcross == 64 || ((G::kAcross == 8 || kJoinsLines) && G::kSpatial > 1));
  static_assert(G::kSpatial > 1 || G::kTileM == 128);
  static_assert(kColumns <= 256 && kLines <= 256, "TMA's limit");

  // Returns the number of tiles of positions.
  static CUTE_DEVICE int tiles(ConvWindow const& window, int64_t images) {
    const int down = kJoinsLines ? cute::ceil_div(window.out[1] * kColumns, G::kTileM)
                                 : cute::ceil_div(window.out[1], kHeight);
    return int(images) * window.out[0] * down * cute::ceil_div(window.out[2], kWidth);
  }

  // A Corner is the position of a tile's patch, without the offset of a filter tap. The tile's first
  // result belongs to place number `skipped` of the patch.
  struct Corner {
    int image, z, y, x, skipped;
  };
  static CUTE_DEVICE Corner corner_of(ConvWindow const& window, int tile) {
    if constexpr (kJoinsLines) {
      const int down = cute::ceil_div(window.out[1] * kColumns, G::kTileM),
                across = cute::ceil_div(window.out[2], kWidth), first = tile % down * G::kTileM;
      tile /= down;
      const int x = tile % across * kWidth;
      tile /= across;
      return {tile / window.out[0], tile % window.out[0], first / kColumns, x, first % kColumns};
    }
    const int across = cute::ceil_div(window.out[2], kWidth), down = cute::ceil_div(window.out[1], kHeight);
    const int x = tile % across * kWidth;
    tile /= across;
    const int y = tile % down * kHeight;
    tile /= down;
    return {tile / window.out[0], tile % window.out[0], y, x, 0};
  }

  // For a line of a tile's block, operator() returns the index of the position among the positions
  // of all images. Positions outside the image have the index images * positions, which lies
  // outside all images.
  struct Rows {
    Corner corner;
    int lines, width, plane, outside;
    CUTE_DEVICE Rows(ConvWindow const& window, int64_t images, int tile)
        : corner(corner_of(window, tile)), lines(window.out[1]), width(window.out[2]) {
      plane = (corner.image * window.out[0] + corner.z) * lines;
      outside = int(images) * window.out[0] * lines * width;
    }
    CUTE_DEVICE int operator()(int block, int line) const {
      if constexpr (kJoinsLines) {
        const int place = corner.skipped + block * 64 + line, column = place % kColumns,
                  y = corner.y + place / kColumns, x = corner.x + column;
        return y < lines && column < kWidth && x < width ? (plane + y) * width + x : outside;
      }
      const int y = corner.y + block % kTall * kDown + line / G::kAcross,
                x = corner.x + block / kTall * G::kAcross + line % G::kAcross;
      return y < lines && x < width ? (plane + y) * width + x : outside;
    }
  };

  // Loads a patch: the positions from (x, y, z) on, with the chunk of channels that begins at
  // `channel`.
  static CUTE_DEVICE void load(cute::TmaDescriptor const& input, uint64_t& full, void* to, int channel,
                               int x, int y, int z, int image) {
    const auto hint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
    if constexpr (G::kSpatial == 1)
      cute::SM90_TMA_LOAD_3D::copy(&input, &full, hint, to, channel, x, image);
    else if constexpr (G::kSpatial == 2)
      cute::SM90_TMA_LOAD_4D::copy(&input, &full, hint, to, channel, x, y, image);
    else
      cute::SM90_TMA_LOAD_5D::copy(&input, &full, hint, to, channel, x, y, z, image);
  }

  using Op = decltype(cute::SM90::GMMA::ss_op_selector<
                      Element, Element, float,
                      cute::Shape<cute::_64, cute::Int<G::kTileN>, cute::Int<32 / int(sizeof(Element))>>,
                      cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::K>());

  // Returns the descriptor of lines of 128 bytes with the swizzle of 128 bytes. Groups of eight lines
  // lie `distance` bytes apart.
  static CUTE_DEVICE cute::SM90::GMMA::DescriptorIterator operand(uint32_t lines, int distance) {
    cute::GmmaDescriptor descriptor;
    descriptor.desc_ =
        uint64_t(1) << 62 | uint64_t(distance / 16) << 32 | uint64_t(1) << 16 | lines >> 4;
    return {descriptor};
  }

  // The operands of a step: the lines of a filter tap, which begin at address `lines` in shared
  // memory, and weights. gemm() multiplies them for two blocks, from `first_block` on.
  struct Step {
    cute::SM90::GMMA::DescriptorIterator lines, weights;
    CUTE_DEVICE Step(uint32_t lines, uint32_t weights, int first_block)
        : lines(operand(lines + line_of(first_block) * 128, G::kAcross == 8 ? kColumns * 128 : 1024)),
          weights(operand(weights, 1024)) {}

    // Adds the products to `sums`, or replaces `sums` if Replaces is true. An instruction reads 32
    // bytes of each line.
    template <bool Replaces, class Sums>
    CUTE_DEVICE void gemm(Sums& sums) const {
      // A consumer's blocks lie below or beside one another.
      constexpr int kBlock =
          (kJoinsLines ? 64 : kTall > 1 ? kDown * kColumns : G::kAcross) * 128 / 16;
      cute::MMA_Atom<Op> atom;
      CUTE_UNROLL
      for (int k = 0; k < (G::kJoined ? 2 : 4); ++k) {
        atom.accumulate_ =
            Replaces && k == 0 ? cute::SM90::GMMA::ScaleOut::Zero : cute::SM90::GMMA::ScaleOut::One;
        CUTE_UNROLL
        for (int block = 0; block < 2; ++block)
          cute::gemm(atom, cute::make_tensor(lines + (k * 2 + block * kBlock), cute::Layout<cute::_1>{}),
                     cute::make_tensor(weights + k * 2, cute::Layout<cute::_1>{}), sums(cute::_, block));
      }
    }

    // Returns the line of a patch at which block b of a tile begins.
    static CUTE_DEVICE int line_of(int b) {
      return kJoinsLines ? b * 64 : b % kTall * kDown * kColumns + b / kTall * G::kAcross;
    }
  };
};

template <class G>
struct ConvPatches : ConvFinish<G>, PatchTiles<G> {
  using Geometry = G;
  using Element = typename G::Element;
  using Tiles = PatchTiles<G>;
  using Tiles::kColumns;
  static constexpr int kDepth = 128 / int(sizeof(Element)), kBlocks = 2, kPart = G::kTileN / 2;
  static constexpr int kParts = G::kParts, kLoads = G::kJoined ? 1 : kParts;  // of a patch or a step
  static constexpr bool kJoined = G::kJoined;
  static constexpr bool kTurns = G::kTileM == 128;
  static constexpr int kFirstProducer = 256, kThreads = 384;
  static constexpr int kTaps = G::kKernel[0] * G::kKernel[1];  // filter taps that read one patch
  static constexpr int kBoxBytes = Tiles::kLines * kColumns * 128;
  static constexpr int kPatchBytes = (kBoxBytes + 1023) / 1024 * 1024;
  static_assert(G::kTileN % 32 == 0 && G::kTileN <= 128 && G::kSpatial >= 1 && G::kSpatial <= 3);
  static_assert(G::kPhases == 1 || (kTaps < 32 && G::kKept == 0));
  static_assert(kParts == 1 || (G::kTileN <= 64 && G::kKept == 0));

  struct alignas(1024) Storage {
    unsigned char patches[G::kPatches][kLoads][kPatchBytes];
    Element weights[G::kKept > 0 ? G::kKept : G::kStages][kLoads][G::kTileN * kDepth];
    typename ConvFinish<G>::Channels channels;
    typename ConvFinish<G>::Staged staged;
    typename ConvFinish<G>::Rows rows;
    uint64_t patch_full[G::kPatches], patch_empty[G::kPatches];
    uint64_t weights_full[G::kStages], weights_empty[G::kStages];
    uint64_t order[2];  // barrier i lets consumer i multiply its next tile
  };

  float results[kBlocks][kPart];

  // All threads must call begin() first.
  CUTE_DEVICE void begin(Storage& storage) {
    if (threadIdx.x == 0) {
      constexpr int kReleases = kTurns ? 4 : 8;  // warps that release a stage
      for (int i = 0; i < G::kPatches; ++i) {
        cute::initialize_barrier(storage.patch_full[i], 1);
        cute::initialize_barrier(storage.patch_empty[i], kReleases);
      }
      for (int i = 0; i < G::kStages; ++i) {
        cute::initialize_barrier(storage.weights_full[i], 1);
        cute::initialize_barrier(storage.weights_empty[i], kReleases);
      }
      for (int i = 0; i < 2; ++i) cute::initialize_barrier(storage.order[i], 4);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }

  static CUTE_DEVICE bool produces() { return threadIdx.x >= kFirstProducer; }
  static CUTE_DEVICE void start_loading() { cutlass::arch::warpgroup_reg_dealloc<40>(); }
  static CUTE_DEVICE void start_multiplying() { cutlass::arch::warpgroup_reg_alloc<232>(); }

  // Loads the inputs and weights of a tile.
  CUTE_DEVICE void load(cute::TmaDescriptor const& input, cute::TmaDescriptor const& weights,
                        ConvWindow const& window, ConvTile tile, Storage& storage) {
    if (threadIdx.x != kFirstProducer) return;
    const auto corner = Tiles::corner_of(window, tile.m);
    const bool loads = G::kKept == 0 || !has_weights_;
    if (G::kKept > 0 && loads)
      cute::set_barrier_transaction_bytes(storage.weights_full[0], window.steps() * kStepBytes);
    int kept = 0;
    for (int plane = 0; plane < window.kernel[0]; ++plane) {
      const uint32_t taps = taps_of(tile, plane);
      if (taps == 0) continue;
      for (int chunk = 0; chunk < window.chunks; ++chunk, patch_.advance()) {
        uint64_t& full = storage.patch_full[patch_.stage];
        cute::wait_barrier(storage.patch_empty[patch_.stage], patch_.phase ^ 1);
        cute::set_barrier_transaction_bytes(full, kLoads * kBoxBytes);
        CUTE_UNROLL
        for (int part = 0; part < kLoads; ++part)
          Tiles::load(input, full, storage.patches[patch_.stage][part],
                      part * window.pitch + chunk * kDepth, corner.x + window.start[2],
                      corner.y + window.start[1],
                      corner.z + window.start[0] + plane * window.dilation[0], corner.image);
        if (!loads) continue;
        for (int i = 0; i < kTaps; ++i) {
          if (!has_tap(taps, i)) continue;
          const int depth = ((plane * kTaps + i) * window.chunks + chunk) * kDepth,
                    filter = tile.phase * window.filters + tile.n * G::kTileN;
          if constexpr (G::kKept > 0) {
            load_weights(weights, storage.weights_full[0], storage.weights[kept++][0], depth, filter);
          } else {
            uint64_t& ready = storage.weights_full[weights_.stage];
            cute::wait_barrier(storage.weights_empty[weights_.stage], weights_.phase ^ 1);
            cute::set_barrier_transaction_bytes(ready, kLoads * kStepBytes);
            CUTE_UNROLL
            for (int part = 0; part < kLoads; ++part)
              load_weights(weights, ready, storage.weights[weights_.stage][part],
                           part * window.steps() * kDepth + depth, filter);
            weights_.advance();
          }
        }
      }
    }
    has_weights_ = true;
  }

  // Returns whether the other consumer computes this tile. Both consumers must call skips() for every
  // tile of the CTA, in the same order.
  CUTE_DEVICE bool skips(ConvWindow const& window, ConvTile tile) {
    if constexpr (!kTurns) return false;
    const bool own = turn_ % 2 == this->consumer();
    ++turn_;
    if (own) return false;
    int patches = window.kernel[0], steps = patches * kTaps;
    if constexpr (G::kPhases > 1) {
      patches = 0, steps = __popc(G::taps(tile.phase));
      for (int plane = 0; plane < window.kernel[0]; ++plane) patches += taps_of(tile, plane) != 0;
    }
    patch_.advance(patches * window.chunks);
    weights_.advance(steps * window.chunks);
    return true;
  }

  // Multiplies a tile, and leaves the results in `results`.
  CUTE_DEVICE void multiply(ConvWindow const& window, ConvTile tile, Storage& storage) {
    if constexpr (kParts == 2) {
      multiply_pairs(window, tile, storage);
      return;
    }
    auto sums = zeros();
    each_step(window, tile, storage, [&](uint32_t lines, uint32_t weights) {
      begin_products(sums);
      typename Tiles::Step(lines, weights, first_block()).template gemm<false>(sums);
      cute::warpgroup_commit_batch();
      cute::warpgroup_wait<1>();  // now the instructions of the previous step have ended
    });
    end_products(sums);
    CUTE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      CUTE_UNROLL
      for (int i = 0; i < kPart; ++i) results[block][i] = sums(i, block);
    }
  }

  template <class P, class R, class V, class F>
  CUTE_DEVICE void write(Storage& storage, ConvWindow const& window, int64_t images, ConvTile tile,
                         P&& place, R&& read, V&& value, F&& store) const {
    this->finish(storage, results, rows_of(window, images, tile), place, read, value, store);
  }

  template <class Accumulator, bool Replaces, class P, class R, class V>
  CUTE_DEVICE void reduce(Storage& storage, ConvWindow const& window, int64_t images, ConvTile tile, int k,
                          int channels, P&& place, R&& read, V&& value) {
    ConvFinish<G>::template reduce<Accumulator, Replaces>(
        storage, k, channels, results, rows_of(window, images, tile), place, read, value);
  }

  template <class P, class F>
  CUTE_DEVICE void each_place(Storage&, ConvWindow const& window, int64_t images, ConvTile tile, P&& place,
                              F&& f) const {
    ConvFinish<G>::each_place(rows_of(window, images, tile), place, f);
  }

 private:
  static CUTE_DEVICE auto rows_of(ConvWindow const& window, int64_t images, ConvTile tile) {
    const typename Tiles::Rows row_of(window, images, tile.m);
    return [=](int block, int line) { return row_of(first_block() + block, line); };
  }

  // Returns the filter taps of a tile that read the patch `plane`, the first tap as the lowest bit.
  // Without phases, a tile has all filter taps, and the function returns 1.
  static CUTE_DEVICE uint32_t taps_of([[maybe_unused]] ConvTile tile, [[maybe_unused]] int plane) {
    if constexpr (G::kPhases == 1) return 1;
    else return G::taps(tile.phase) >> plane * kTaps & ((uint32_t(1) << kTaps) - 1);
  }
  static CUTE_DEVICE bool has_tap([[maybe_unused]] uint32_t taps, [[maybe_unused]] int tap) {
    if constexpr (G::kPhases == 1) return true;
    else return taps >> tap & 1;
  }

  static constexpr int kStepBytes = int(sizeof(Element)) * G::kTileN * kDepth;  // of a load

  static CUTE_DEVICE auto zeros() {
    auto sums = cute::make_tensor<float>(cute::Shape<cute::Int<kPart>, cute::Int<kBlocks>>{});
    cute::clear(sums);
    return sums;
  }

  template <class Sums>
  static CUTE_DEVICE void begin_products(Sums& sums) {
    cute::warpgroup_fence_operand(sums);
    cute::warpgroup_arrive();
  }
  // Waits for all instructions, and releases the stages that they read.
  template <class Sums>
  CUTE_DEVICE void end_products(Sums& sums) {
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(sums);
    release(read_weights_), release(read_patch_);
  }

  // Multiplies a tile of pairs of half_t.
  CUTE_DEVICE void multiply_pairs(ConvWindow const& window, ConvTile tile, Storage& storage) {
    auto high = zeros(), mixed = zeros();
    CUTE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      CUTE_UNROLL
      for (int i = 0; i < kPart; ++i) results[block][i] = 0;
    }
    each_step(window, tile, storage, [&](uint32_t lines, uint32_t weights) {
      const int block = first_block();
      begin_products(high);
      typename Tiles::Step(lines, weights, block).template gemm<true>(high);
      cute::warpgroup_commit_batch();
      begin_products(mixed);
      constexpr int kLowLines = kJoined ? 64 : kPatchBytes, kLowWeights = kJoined ? 64 : kStepBytes;
      typename Tiles::Step(lines + kLowLines, weights, block).template gemm<false>(mixed);
      typename Tiles::Step(lines, weights + kLowWeights, block).template gemm<false>(mixed);
      cute::warpgroup_commit_batch();
      // Now the previous step has ended, and `high` is complete. The CUDA cores add it while the
      // tensor cores compute the other products.
      cute::warpgroup_wait<1>();
      cute::warpgroup_fence_operand(high);
      CUTE_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        CUTE_UNROLL
        for (int i = 0; i < kPart; ++i) results[b][i] += high(i, b);
      }
    });
    end_products(mixed);
    CUTE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      CUTE_UNROLL
      for (int i = 0; i < kPart; ++i)
        results[block][i] =
            fmaf(mixed(i, block), 1 / HalfPair::kLowScale, results[block][i]) * (1 / G::kScale);
    }
  }

  // Calls step(lines, weights) for each step of a tile. The arguments are the addresses of the high
  // parts, or of the operands without parts. step() must start the step's wgmma instructions, and
  // wait until the instructions of the previous step have ended.
  template <class F>
  CUTE_DEVICE void each_step(ConvWindow const& window, ConvTile tile, Storage& storage, F&& step) {
    if constexpr (kTurns) wait_for_turn(storage.order, turn_ - 1);
    if constexpr (G::kKept > 0) cute::wait_barrier(storage.weights_full[0], 0);
    read_patch_ = read_weights_ = 0;
    const uint32_t first_patch =
        address_of(storage.patches) + Tiles::corner_of(window, tile.m).skipped * 128;
    const uint32_t first_weights = address_of(storage.weights);
    for (int i = 0; i < window.kernel[0] * window.chunks; ++i) {
      const uint32_t taps = taps_of(tile, i / window.chunks);
      if (taps == 0) continue;
      cute::wait_barrier(storage.patch_full[patch_.stage], patch_.phase);
      const uint32_t lines = first_patch + patch_.stage * kLoads * kPatchBytes;
      // With pairs, no registers are left for the addresses of several taps.
#pragma unroll kParts == 1 ? kTaps : 1
      for (int tap = 0; tap < kTaps; ++tap) {
        if (!has_tap(taps, tap)) continue;
        if constexpr (G::kKept == 0)
          cute::wait_barrier(storage.weights_full[weights_.stage], weights_.phase);
        const int line = tap / G::kKernel[1] * G::kDilation[0] * kColumns +
                         tap % G::kKernel[1] * G::kDilation[1];
        const int at = G::kKept > 0 ? i * kTaps + tap : weights_.stage;
        step(lines + line * 128, first_weights + at * kLoads * kStepBytes);
        release(read_weights_), release(read_patch_);
        read_patch_ = 0;
        if constexpr (G::kKept == 0) {
          read_weights_ = address_of(&storage.weights_empty[weights_.stage]);
          weights_.advance();
        }
      }
      read_patch_ = address_of(&storage.patch_empty[patch_.stage]);
      patch_.advance();
    }
    if constexpr (kTurns) end_turn(storage.order);
  }

  static CUTE_DEVICE void load_weights(cute::TmaDescriptor const& weights, uint64_t& full, void* to,
                                       int depth, int filter) {
    cute::SM90_TMA_LOAD_2D::copy(&weights, &full, uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST), to,
                                 depth, filter);
  }

  // Returns this consumer's first block of a tile.
  static CUTE_DEVICE int first_block() { return kTurns ? 0 : ConvFinish<G>::consumer() * kBlocks; }

  static CUTE_DEVICE uint32_t address_of(void const* shared) { return cute::cast_smem_ptr_to_uint(shared); }
  // Signals a barrier. Does nothing if the address is 0, which is no barrier's address, because the
  // patches come first in shared memory.
  static CUTE_DEVICE void release(uint32_t empty) {
    if (empty == 0) return;
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty) : "memory");
  }

  RingPlace<G::kPatches> patch_;
  RingPlace<G::kStages> weights_;
  int turn_ = 0;  // number of calls of skips()
  // Addresses of the barriers of stages that wgmma instructions still read; 0: no stage.
  uint32_t read_patch_ = 0, read_weights_ = 0;
  bool has_weights_ = false;
};

}  // namespace cutegen
