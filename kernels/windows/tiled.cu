// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Windows over tiles: {{what}}. A CTA computes kTall x kColumns results of one
// image and channel. It keeps their inputs in shared memory, one plane at a time. A thread
// computes kRows results, one below the other, so that each value it reads serves several windows.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kRows = {{rows}};        // results of a thread, one below the other
constexpr int kTall = {{tall}};        // results of a tile, along the axis before the last
constexpr int kColumns = {{columns}};  // and along the last axis
{{constants}}
constexpr int kHeight = (kTall - 1) * kStride1 + (kKernel1 - 1) * kDilation1 + 1;  // of the inputs
constexpr int kWidth = (kColumns - 1) * kStride2 + (kKernel2 - 1) * kDilation2 + 1;
constexpr int kReach = (kRows - 1) * kStride1 + (kKernel1 - 1) * kDilation1 + 1;  // of a thread
constexpr int kWork = kTall / kRows * kColumns;
constexpr int kTurns = (kWork + kThreads - 1) / kThreads;

// Teams of whole warps load the rows of a tile.
constexpr int teams(int most) {
  int count = 1;
  while (2 * count <= most && 2 * count <= kThreads / 32) count *= 2;
  return count;
}
constexpr int kTeams = teams(kHeight), kTeam = kThreads / kTeams;
constexpr int kRounds = (kHeight + kTeams - 1) / kTeams, kSteps = (kWidth + kTeam - 1) / kTeam;
constexpr int kTogether = kRounds * kSteps <= 32 ? kRounds : 1;  // rounds in flight

{{collect}}
// The kernel row that multiplies input row `i` of a thread for its result `r`; -1 if none does.
__device__ constexpr int kernel_row(int i, int r) {
  const int distance = i - r * kStride1;
  return distance >= 0 && distance % kDilation1 == 0 && distance / kDilation1 < kKernel1
             ? distance / kDilation1
             : -1;
}

// Does the work after the window for one element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
{{sizes}}) {
  __shared__ float tile[kHeight * kWidth];
  const unsigned across = unsigned((out2 + kColumns - 1) / kColumns),
                 down = unsigned((out1 + kTall - 1) / kTall);
  unsigned rest = blockIdx.x;
  const int first2 = int(rest % across) * kColumns;
  rest /= across;
  const int first1 = int(rest % down) * kTall;
  rest /= down;
  const int64_t p0 = rest % unsigned(out0);
  rest /= unsigned(out0);
  const int64_t channel = rest % unsigned({{channels}}), n = rest / unsigned({{channels}});

{{of_channel}}
  const int start0 = int(p0) * kStride0 - kPadding0, above = first1 * kStride1 - kPadding1,
            left = first2 * kStride2 - kPadding2;
  const int height = int(in1), width = int(in2), step1 = int(in_s1), step2 = int(in_s2);
  float sums[kTurns][kRows];
  CUTE_UNROLL
  for (int t = 0; t < kTurns; ++t)
    CUTE_UNROLL
    for (int r = 0; r < kRows; ++r) sums[t][r] = {{initial}};

{{channel_loop}}
  for (int k0 = 0; k0 < kKernel0; ++k0) {
    const int at0 = start0 + k0 * kDilation0;
    if (at0 < 0 || at0 >= int(in0)) continue;  // the same for all threads
    const {{input_type}}* plane = {{input}} + n * in_n + {{input_channel}} * in_c + at0 * in_s0;
    __syncthreads();
#pragma unroll kTogether
    for (int round = 0; round < kRounds; ++round) {
      const int row = round * kTeams + threadIdx.x / kTeam, at1 = above + row;
      const bool inside = at1 >= 0 && at1 < height;
      const {{input_type}}* line = plane + (inside ? at1 * step1 : 0);
      float values[kSteps];
      CUTE_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        const int at2 = left + step * kTeam + int(threadIdx.x % kTeam);
        values[step] = {{initial}};
        if (inside && unsigned(at2) < unsigned(width))
          values[step] = cutegen::convert<float>(line[at2 * step2]);
      }
      CUTE_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        const int at = step * kTeam + int(threadIdx.x % kTeam);
        if (row < kHeight && at < kWidth) tile[row * kWidth + at] = values[step];
      }
    }
    __syncthreads();
{{load_taps}}
    CUTE_UNROLL
    for (int t = 0; t < kTurns; ++t) {
      const int work = t * kThreads + threadIdx.x;
      if (kWork % kThreads != 0 && work >= kWork) continue;
      const float* from = tile + work / kColumns * kRows * kStride1 * kWidth +
                          work % kColumns * kStride2;
      CUTE_UNROLL
      for (int i = 0; i < kReach; ++i) {
{{use_row}}
      }
    }
  }

  CUTE_UNROLL
  for (int t = 0; t < kTurns; ++t) {
    const int work = t * kThreads + threadIdx.x;
    const int64_t p2 = first2 + work % kColumns;
    if (work >= kWork || p2 >= out2) continue;
    CUTE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int64_t p1 = first1 + work / kColumns * kRows + r;
      if (p1 >= out1) continue;
      float window = sums[t][r];
{{divide}}{{finish}}
    }
  }
}
