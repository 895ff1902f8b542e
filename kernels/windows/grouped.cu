// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A convolution of 16-bit groups with few channels, on the tensor cores. A CTA computes kTall rows
// of eight output channels. It keeps a patch of the input in shared memory: cells of eight input
// channels of one position. Positions count along the padded rows of the patch, so the cell of a
// filter tap lies at a fixed distance, and results between two rows are discarded.
// The plan sets {{wide}} and {{tall}}: the results of a row, and the rows of a tile; {{macro}}: the
// elements of a load; and {{whole}}: 1 if rows of the results consist of whole aligned strips.
#include <cute/tensor_impl.hpp>
#include <cutegen/conv_grouped.cuh>
#include <cutegen/math.cuh>
#include <cutegen/strips.cuh>

using namespace cute;

using Element = {{input_type}};
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kStrip = 4;  // results that a thread finishes together
constexpr int kChannels = 8;
constexpr int kVector = {{macro}};
constexpr bool kWhole = {{whole}};
constexpr int kWide = {{wide}}, kTall = {{tall}};
{{constants}}
constexpr int kTaps = kKernel1 * kKernel2;
// Cells of a row of the patch, in whole strips.
constexpr int kRow = (kWide + (kKernel2 - 1) * kDilation2 + kStrip - 1) / kStrip * kStrip;
constexpr int kHigh = kTall + (kKernel1 - 1) * kDilation1;  // rows of the patch
constexpr int kBlocks = (kTall * kRow + 16 * kWarps - 1) / (16 * kWarps);  // of a warp
constexpr int kCells =
    16 * kWarps * kBlocks + (kKernel1 - 1) * kDilation1 * kRow + (kKernel2 - 1) * kDilation2;
constexpr int kShift = (kPadding2 % kVector + kVector) % kVector;
constexpr int kLoads = (kRow + kShift + kVector - 1) / kVector;  // vectors of a row
// The pitch of a channel's results avoids bank conflicts when warps store their sums.
constexpr int kPlane = 16 * kWarps * kBlocks + 4;
constexpr int kBytes = 16 * kCells > 4 * kChannels * kPlane ? 16 * kCells : 4 * kChannels * kPlane;

using Cell = cutegen::Pack<Element, kChannels>;

// The distance of a filter tap's cell.
__device__ constexpr int distance(int tap) {
  return tap / kKernel2 * kDilation1 * kRow + tap % kKernel2 * kDilation2;
}

// Does the work after the convolution for one element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads, 4)
{{name}}({{params}},
{{sizes}}) {
  __shared__ __align__(16) unsigned char storage[kBytes];
  Cell* slots = reinterpret_cast<Cell*>(storage);
  float* cache = reinterpret_cast<float*>(storage);
  const unsigned down = unsigned((out1 + kTall - 1) / kTall),
                 parts = unsigned((out_of_group + kChannels - 1) / kChannels);
  unsigned rest = blockIdx.x;
  const int first1 = int(rest % down) * kTall;
  rest /= down;
  const int first = int(rest % parts) * kChannels;
  rest /= parts;
  const int64_t group = rest % unsigned(groups), n = rest / unsigned(groups);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int height = int(in1), width = int(in2), step1 = int(in_s1), step2 = int(in_s2);
  const int above = first1 - kPadding1, left = -kPadding2 - kShift;

  float sums[kBlocks][4] = {};
#pragma unroll 1
  for (int start = 0; start < int(in_of_group); start += kChannels) {
    const Element* image = {{input}} + n * in_n + (group * in_of_group + start) * in_c;
    __syncthreads();
#pragma unroll 2
    for (int e = threadIdx.x; e < kHigh * kLoads; e += kThreads) {
      const int row = e / kLoads, column = e % kLoads * kVector, at1 = above + row,
                at2 = left + column;
      const bool inside = unsigned(at1) < unsigned(height) && unsigned(at2) < unsigned(width);
      const Element* from = image + at1 * int64_t(step1) + at2 * int64_t(step2);
      cutegen::Pack<Element, kVector> vectors[kChannels];
      CUTE_UNROLL
      for (int k = 0; k < kChannels; ++k)
        vectors[k] = cutegen::load_pack_if<kVector>(inside && start + k < in_of_group,
                                                    from + k * in_c);
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v) {
        Cell cell;
        CUTE_UNROLL
        for (int k = 0; k < kChannels; ++k) cell.element[k] = vectors[k].element[v];
        const int at = column - kShift + v;
        if (at >= 0 && at < kRow) slots[row * kRow + at] = cell;
      }
    }
    for (int e = kHigh * kRow + threadIdx.x; e < kCells; e += kThreads) slots[e] = Cell{};
    // The weights of output channel lane / 4 for two input channels.
    uint32_t share[kTaps];
    const int m = first + lane / 4, k = start + lane % 4 * 2;
    CUTE_UNROLL
    for (int tap = 0; tap < kTaps; ++tap) {
      const Element* from = {{weight}} + (group * out_of_group + m) * weight_o + k * weight_i +
                            tap / kKernel2 * weight1 + tap % kKernel2 * weight2;
      const bool inside = m < out_of_group;
      cutegen::Pack<Element, 2> pair;
      pair.element[0] =
          cutegen::load_pack_if<1>(inside && k < in_of_group, from).element[0];
      pair.element[1] =
          cutegen::load_pack_if<1>(inside && k + 1 < in_of_group, from + weight_i).element[0];
      memcpy(&share[tap], &pair, sizeof(pair));
    }
    __syncthreads();
    const Cell* positions = slots + warp * 16 + lane % 16;
    CUTE_UNROLL
    for (int tap = 0; tap < kTaps; tap += 2) {
      const int second = tap + 1 < kTaps ? tap + 1 : tap;
      const Cell* at = positions + (lane < 16 ? distance(tap) : distance(second));
      CUTE_UNROLL
      for (int e = 0; e < kBlocks; ++e)
        if (tap + 1 < kTaps)
          cutegen::multiply_two<Element>(sums[e], at + e * 16 * kWarps, share[tap], share[tap + 1]);
        else
          cutegen::multiply_one<Element>(sums[e], at + e * 16 * kWarps, share[tap]);
    }
  }

  __syncthreads();
  CUTE_UNROLL
  for (int e = 0; e < kBlocks; ++e)
    CUTE_UNROLL
    for (int part = 0; part < 2; ++part) {
      float* to =
          cache + lane % 4 * 2 * kPlane + (e * kWarps + warp) * 16 + part * 8 + lane / 4;
      to[0] = sums[e][2 * part], to[kPlane] = sums[e][2 * part + 1];
    }
  __syncthreads();

  constexpr int64_t p0 = 0;
#pragma unroll 1
  for (int m = warp; m < kChannels; m += kWarps) {
    if (first + m >= out_of_group) break;
{{each}}
    constexpr int kStrips = (kWide + kStrip - 1) / kStrip;
    for (int e = lane; e < kTall * kStrips; e += 32) {
      const int row = e / kStrips, first2 = e % kStrips * kStrip;
      const int64_t p1 = first1 + row;
      if (p1 >= out1) break;
      const float4 four =
          *reinterpret_cast<const float4*>(&cache[m * kPlane + row * kRow + first2]);
      const float values[kStrip] = {four.x, four.y, four.z, four.w};
{{strips}}
      CUTE_UNROLL
      for (int v = 0; v < kStrip; ++v) {
        const int64_t p2 = first2 + v;
        if (!kWhole && p2 >= out2) continue;
        const float window = values[v];
{{finish}}
      }
{{stores}}
    }
  }
}
