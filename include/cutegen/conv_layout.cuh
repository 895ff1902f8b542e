// SPDX-License-Identifier: Apache-2.0
// Computes at compile time where a convolution finds its inputs in shared memory, in the layout
// that wgmma reads.
//
// Contract: a tile of results needs a box of inputs, called its patch. A patch (an input box)
// consists of planes. A plane has one cell of 16 bytes for each position of the input box. A cell
// of 16 bytes holds several channels of one position or, with kAlongX, several filter taps along
// the last axis. For each filter tap, eight adjacent results read eight adjacent 16-byte cells. The
// inputs for a filter tap therefore begin at a constant offset in the patch, and the kernel does
// not copy windows.
//
// With a stride, the filter taps that read inputs with the same remainder modulo the stride form a
// class, and each class has its own input box. In a transposed convolution, the results at
// positions t * stride + f form phase f, and each phase has its own filter taps.
//
// The class G describes a convolution. Its members are kAlongX; kPlanes, the number of planes of
// cells in a pipeline stage; kGroup, the number of steps (wgmma instructions) in a stage of
// weights; tile(i) and axis(i) for the axes 0 to 2. A convolution over one or two axes uses the
// last axes, and the other axes have size 1. The number kPlanes must be even unless each phase has
// several filter taps. The function conv_steps() pads the steps (wgmma instructions) of each phase
// to a multiple of kGroup.
//
// Example: constexpr auto steps = cutegen::conv_steps<G>(); steps.first[phase]
#pragma once

#include <cute/config.hpp>

#include <cuda/std/cstdint>

namespace cutegen {

struct ConvAxis {
  int kernel, stride, padding, dilation;
  bool transposed;

  // The position of a tap's input has a remainder modulo the stride. Returns the number of taps
  // after which these remainders repeat.
  CUTE_HOST_DEVICE constexpr int period() const {
    int a = stride, b = dilation;
    while (b != 0) {
      const int rest = a % b;
      a = b, b = rest;
    }
    return stride / a;
  }
  CUTE_HOST_DEVICE constexpr int phases() const { return transposed ? stride : 1; }
  CUTE_HOST_DEVICE constexpr int classes() const {
    return transposed ? 1 : kernel < period() ? kernel : period();
  }
  // Returns the position of a patch's first input, relative to the tile. In a transposed
  // convolution, front() makes the smallest result of shift() equal to 0.
  CUTE_HOST_DEVICE constexpr int front() const {
    if (!transposed) return -padding;
    const int behind = (kernel - 1) * dilation - padding;
    return behind >= 0 ? -(behind / stride) : (stride - 1 - behind) / stride;
  }
  // Returns the number of positions by which a patch (input box) is larger than its tile.
  CUTE_HOST_DEVICE constexpr int reach() const {
    return transposed ? (padding + stride - 1) / stride - front() : (kernel - 1) * dilation / stride;
  }
  // Returns the number of input positions between the first inputs of class 0 and of class `cls`.
  CUTE_HOST_DEVICE constexpr int remainder(int cls) const { return cls * dilation % stride; }
  CUTE_HOST_DEVICE constexpr bool belongs(int place, int cls, int phase) const {
    return transposed ? (phase + padding - place * dilation) % stride == 0 : place % period() == cls;
  }
  // Returns the position in the patch that a tap reads, on this axis, for a phase's first result.
  CUTE_HOST_DEVICE constexpr int shift(int place, int phase) const {
    return transposed ? (phase + padding - place * dilation) / stride - front()
                      : place * dilation / stride;
  }
  // Returns the i-th tap, if taps are sorted by the position in the patch that they read.
  CUTE_HOST_DEVICE constexpr int ordered(int i) const { return transposed ? kernel - 1 - i : i; }
};

template <class G>
struct ConvLayout {
  static constexpr int kKernel0 = G::axis(0).kernel, kKernel1 = G::axis(1).kernel,
                       kKernel2 = G::axis(2).kernel;
  static constexpr int kSize0 = G::tile(0) + G::axis(0).reach(),
                       kSize1 = G::tile(1) + G::axis(1).reach(),
                       kSize2 = G::tile(2) + G::axis(2).reach();
  static constexpr int kClasses0 = G::axis(0).classes(), kClasses1 = G::axis(1).classes(),
                       kClasses2 = G::axis(2).classes();
  static constexpr int kPhases0 = G::axis(0).phases(), kPhases1 = G::axis(1).phases(),
                       kPhases2 = G::axis(2).phases(), kPhases = kPhases0 * kPhases1 * kPhases2;
  static constexpr int kBox = kSize0 * kSize1 * kSize2;
  static constexpr int kCells = kClasses0 * kClasses1 * kClasses2 * kBox;  // cells that a plane has
  static constexpr int kMostSteps =
      (G::kPlanes * kKernel0 * kKernel1 * kKernel2 + kPhases * (2 * G::kGroup - 1)) / 2;
};

// ConvSteps lists the steps of each phase. A step is one wgmma instruction, which reads two 16-byte
// cells for each result.
template <int Most, int Phases>
struct ConvSteps {
  // The low half of input[i] is the offset of the first cell of step i, the high half the distance
  // to the second cell.
  uint32_t input[Most] = {};
  int cell[2 * Most] = {};     // index of tap and plane, or -1 if the weights are zero
  int first[Phases + 1] = {};  // first[p] is the first step of phase p

  CUTE_HOST_DEVICE constexpr void add(int i, int offset, int place) {
    cell[i] = place;
    if (i % 2 == 0) input[i / 2] = uint32_t(offset) | 1u << 16;
    else input[i / 2] += uint32_t(offset - int(input[i / 2] & 0xffff) - 1) << 16;
  }
  // If a step has only one cell, adds the preceding cell of the patch, with weight zero. The
  // following cell of the patch may not exist, but the preceding cell always does.
  CUTE_HOST_DEVICE constexpr void pad(int i) {
    cell[i] = cell[i - 1];
    cell[i - 1] = -1;
    input[i / 2] -= 1;
  }
  // Adds a step that reads the cells of the previous step again, with weight zero.
  CUTE_HOST_DEVICE constexpr void skip(int i) {
    cell[i] = cell[i + 1] = -1;
    input[i / 2] = input[i / 2 - 1];
  }
};

// Returns the steps of all phases. Within a phase, conv_steps() sorts the cells by position in the
// patch, so the second cell of a step comes after its first cell. The index of tap and plane in
// `cell` is ((plane * kKernel0 + k0) * kKernel1 + k1) * kKernel2 + k2.
template <class G>
CUTE_HOST_DEVICE constexpr auto conv_steps() {
  using L = ConvLayout<G>;
  constexpr ConvAxis x = G::axis(0), y = G::axis(1), z = G::axis(2);
  ConvSteps<L::kMostSteps, L::kPhases> steps;
  int count = 0;  // number of cells
  for (int phase = 0; phase < L::kPhases; ++phase) {
    const int f0 = phase / (L::kPhases1 * L::kPhases2), f1 = phase / L::kPhases2 % L::kPhases1,
              f2 = phase % L::kPhases2;
    steps.first[phase] = count / 2;
    for (int box = 0; box < G::kPlanes * L::kClasses0 * L::kClasses1 * L::kClasses2; ++box) {
      const int plane = box / (L::kClasses0 * L::kClasses1 * L::kClasses2);
      const int c0 = box / (L::kClasses1 * L::kClasses2) % L::kClasses0,
                c1 = box / L::kClasses2 % L::kClasses1, c2 = box % L::kClasses2;
      for (int i0 = 0; i0 < x.kernel; ++i0) {
        const int k0 = x.ordered(i0);
        if (!x.belongs(k0, c0, f0)) continue;
        for (int i1 = 0; i1 < y.kernel; ++i1) {
          const int k1 = y.ordered(i1);
          if (!y.belongs(k1, c1, f1)) continue;
          for (int i2 = 0; i2 < z.kernel; ++i2) {
            const int k2 = z.ordered(i2);
            if (!z.belongs(k2, c2, f2)) continue;
            const int at = (x.shift(k0, f0) * L::kSize1 + y.shift(k1, f1)) * L::kSize2 + z.shift(k2, f2);
            steps.add(count++, box * L::kBox + at,
                      ((plane * x.kernel + k0) * y.kernel + k1) * z.kernel + k2);
          }
        }
      }
    }
    if (count % 2) steps.pad(count++);
    for (; count / 2 % G::kGroup; count += 2) steps.skip(count);
  }
  steps.first[L::kPhases] = count / 2;
  return steps;
}

}  // namespace cutegen
