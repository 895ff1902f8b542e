// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A convolution with few channels per group, by strips. A thread computes kChannels x kRows strips
// of kStrip neighbouring results in registers. It reads rows of the input as aligned vectors, and
// multiplies each element for all its results. All threads of a CTA share the output channels, so
// their weights pass through shared memory.
// The plan sets {{macro}}: the elements of a load, 1 if rows of the input are not whole aligned
// vectors; {{whole}}: 1 if rows of the results consist of whole aligned strips; and {{inputs}}: the
// input channels of a group, 0 if the task file has another number.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/strips.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kAxes = {{axes}};          // of an image
constexpr int kChannels = {{channels}};  // output channels of a thread
constexpr int kRows = {{rows}};          // strips of a thread, one below the other
constexpr int kStrip = {{strip}};        // results of a strip
constexpr int kRounds = {{rounds}};      // results of a thread, one after the other
constexpr bool kLines = {{lines}};       // whether a CTA computes results of one line
constexpr int kInputs = {{inputs}};
constexpr int kChunk = {{chunk}};        // input channels whose weights are in shared memory
constexpr int kVector = {{macro}};
constexpr bool kWhole = {{whole}};
{{constants}}
constexpr int kReach = (kRows - 1) * kStride1 + (kKernel1 - 1) * kDilation1 + 1;  // input rows
constexpr int kSpan = (kStrip - 1) * kStride2 + (kKernel2 - 1) * kDilation2 + 1;  // their inputs
// The first vector of a row begins kShift elements before the first input of a strip.
constexpr int kShift = ((-kPadding2) % kVector + kVector) % kVector;
constexpr int kVectors = (kShift + kSpan + kVector - 1) / kVector;
// Rows in flight. The products of a row of a large filter take long enough for one load.
constexpr int kMostAhead = kKernel1 * kKernel2 < 25 ? 3 : 2;
constexpr int kAhead = kReach < kMostAhead ? kReach : kMostAhead;
constexpr int kTaps = kKernel1 * kKernel2 * kChannels, kPitch = (kTaps + 3) / 4 * 4;
static_assert(kStrip * kStride2 % kVector == 0);

// The kernel row that multiplies input row `i` of a thread for its strip `r`; -1 if none does.
__device__ constexpr int kernel_row(int i, int r) {
  const int distance = i - r * kStride1;
  return distance >= 0 && distance % kDilation1 == 0 && distance / kDilation1 < kKernel1
             ? distance / kDilation1
             : -1;
}
__device__ constexpr bool covered(int i) {
  for (int r = 0; r < kRows; ++r)
    if (kernel_row(i, r) >= 0) return true;
  return false;
}

// Does the work after the convolution for one element, in float32.
{{compute}}

// Few registers allow more warps per SM.
extern "C" __global__ void __launch_bounds__(kThreads, {{resident}} / kThreads)
{{name}}({{params}},
{{sizes}}) {
  __shared__ __align__(16) float taps[kChunk * kKernel0 * kPitch];
  const unsigned parts = unsigned((out_of_group + kChannels - 1) / kChannels),
                 tile = blockIdx.x;
  const int64_t group = parts == 1 ? tile : tile / parts;
  const int first = int(tile - unsigned(group) * parts) * kChannels;
  const int inputs = kInputs > 0 ? kInputs : int(in_of_group);
  const unsigned across = unsigned((out2 + kStrip - 1) / kStrip),
                 down = unsigned((out1 + kRows - 1) / kRows);
  const int height = int(in1), width = int(in2), step1 = int(in_s1), step2 = int(in_s2);

  // Stores the weights of kChunk input channels, beginning at channel `start` of the group.
  auto load = [&](int start) {
#pragma unroll 1
    for (int e = threadIdx.x; e < kChunk * kKernel0 * kPitch; e += kThreads) {
      const int plane = e / kPitch, tap = e % kPitch / kChannels;
      const int m = first + e % kPitch % kChannels;
      const int k = start + plane / kKernel0, k0 = plane % kKernel0, k1 = tap / kKernel2,
                k2 = tap % kKernel2;
      float value = 0;
      if (tap < kKernel1 * kKernel2 && k < inputs && m < out_of_group)
        value = cutegen::convert<float>(
            {{weight}}[(group * out_of_group + m) * weight_o + k * weight_i + k0 * weight0 +
              k1 * weight1 + k2 * weight2]);
      taps[e] = value;
    }
  };
{{once}}
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    // With kLines, the CTA's index gives the image, so no thread divides.
    const unsigned work = (blockIdx.y * kRounds + round) * kThreads + threadIdx.x;
    unsigned rest = kLines ? blockIdx.z : work;
    const int first2 = int(kLines ? work : work % across) * kStrip;
    if (!kLines) rest /= across;
    const int first1 = kAxes > 1 ? int(rest % down) * kRows : 0;
    if (kAxes > 1) rest /= down;
    const int64_t p0 = kAxes > 2 ? rest % unsigned(out0) : 0;
    if (kAxes > 2) rest /= unsigned(out0);
    const int64_t n = rest;
    const bool live = n < batches && (!kLines || first2 < out2);
    const int start0 = int(p0) * kStride0 - kPadding0, above = first1 * kStride1 - kPadding1,
              left = first2 * kStride2 - kPadding2 - kShift;
    const {{input_type}}* image = {{input}} + n * in_n + group * inputs * in_c +
                               (kVector > 1 ? left : left * step2) + above * int64_t(step1);

    float sums[kChannels][kRows][kStrip] = {};
#pragma unroll 1
    for (int start = 0; start < inputs; start += kChunk) {
      if (round == 0 || inputs > kChunk) {
        __syncthreads();
        load(start);
        __syncthreads();
      }
      const int end = inputs - start < kChunk ? inputs - start : kChunk;
#pragma unroll 1
      for (int k = 0; k < end; ++k)
#pragma unroll 1
        for (int k0 = 0; k0 < kKernel0; ++k0) {
          const int at0 = start0 + k0 * kDilation0;
          const bool inside = live && unsigned(at0) < unsigned(in0);
          const {{input_type}}* plane = image + (start + k) * in_c + at0 * in_s0;
          cutegen::Pack<{{input_type}}, kVector> vectors[kReach][kVectors];
          float tap[kPitch];
          CUTE_UNROLL
          for (int e = 0; e < kPitch; e += 4) {
            const float4 four =
                *reinterpret_cast<const float4*>(&taps[(k * kKernel0 + k0) * kPitch + e]);
            tap[e] = four.x, tap[e + 1] = four.y, tap[e + 2] = four.z, tap[e + 3] = four.w;
          }
          CUTE_UNROLL
          for (int next = 0; next < kReach + kAhead - 1; ++next) {
            if (next < kReach && covered(next)) {
              const bool row = inside && unsigned(above + next) < unsigned(height);
              CUTE_UNROLL
              for (int e = 0; e < kVectors; ++e) {
                const int column = left + e * kVector;
                vectors[next][e] = cutegen::load_pack_if<kVector>(
                    row && unsigned(column) < unsigned(width),
                    plane + next * step1 + (kVector > 1 ? e * kVector : e * step2));
              }
            }
            const int i = next - (kAhead - 1);
            if (i < 0 || !covered(i)) continue;
            float values[kSpan];
            CUTE_UNROLL
            for (int e = 0; e < kSpan; ++e)
              values[e] = cutegen::convert<float>(
                  vectors[i][(kShift + e) / kVector].element[(kShift + e) % kVector]);
            CUTE_UNROLL
            for (int r = 0; r < kRows; ++r) {
              if (kernel_row(i, r) < 0) continue;
              CUTE_UNROLL
              for (int k2 = 0; k2 < kKernel2; ++k2)
                CUTE_UNROLL
                for (int m = 0; m < kChannels; ++m)
                  CUTE_UNROLL
                  for (int v = 0; v < kStrip; ++v)
                    sums[m][r][v] += tap[(kernel_row(i, r) * kKernel2 + k2) * kChannels + m] *
                                     values[v * kStride2 + k2 * kDilation2];
            }
          }
        }
    }

    CUTE_UNROLL
    for (int m = 0; m < kChannels; ++m) {
      if (!live || first + m >= out_of_group) continue;
{{each}}
      CUTE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const int64_t p1 = first1 + i;
        if (p1 >= out1) continue;
{{strips}}
        CUTE_UNROLL
        for (int v = 0; v < kStrip; ++v) {
          const int64_t p2 = first2 + v;
          if (!kWhole && p2 >= out2) continue;
          const float window = sums[m][i][v];
{{finish}}
        }
{{stores}}
      }
    }
  }
}
