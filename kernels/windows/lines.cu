// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Pooling by lines. A team of kTeam threads computes kRows x kColumns results of one image and
// channel. Each thread first collects vectors of the input down its columns. The team then collects
// along these lines in shared memory, so an input passes through it once for kRows results.
// The plan sets {{macro}}: 1 if lines of the input are not whole aligned vectors.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}}, kTeam = {{team}}, kTeams = kThreads / kTeam;
constexpr int kRows = {{rows}};        // results of a team, along the axis before the last
constexpr int kColumns = {{columns}};  // and along the last axis
constexpr int kVector = {{macro}};
{{constants}}
constexpr int kReach = (kRows - 1) * kStride1 + (kKernel1 - 1) * kDilation1 + 1;
constexpr int kReads = kRows == 1 ? kKernel1 : kReach;  // input rows that a thread may read
constexpr int kWidth = (kColumns - 1) * kStride2 + (kKernel2 - 1) * kDilation2 + 1;
constexpr int kLine = (kWidth + 2 * kVector - 2) / kVector * kVector;  // in whole vectors
constexpr int kSteps = (kLine + kVector * kTeam - 1) / (kVector * kTeam);
constexpr int kTurns = (kColumns + kTeam - 1) / kTeam;  // of a team along the results
// Loads in flight: of all rows, or of all steps if a window has few rows.
constexpr bool kFew = kKernel0 * kReads < 8;
constexpr int kUnrollSteps = kFew ? kSteps : 1, kUnrollRows = kReads <= 64 ? kReads : 8,
              kUnrollPlanes = kKernel0 * kReads <= 64 ? kKernel0 : 1,
              kUnrollColumns = kKernel2 <= 32 ? kKernel2 : 8;

__device__ __forceinline__ void collect(float& window, float value) {
  {{accumulate}}
}

// Whether the window of result `r` has input row `i`.
__device__ constexpr bool covers(int i, int r) {
  const int distance = i - r * kStride1;
  return distance >= 0 && distance % kDilation1 == 0 && distance / kDilation1 < kKernel1;
}
__device__ constexpr bool covered(int i) {
  for (int r = 0; r < kRows; ++r)
    if (covers(i, r)) return true;
  return false;
}

// Does the work after the pooling for one element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
{{sizes}}) {
  __shared__ __align__(16) float lines[kTeams][kRows][kLine];
  const unsigned across = unsigned((out2 + kColumns - 1) / kColumns),
                 down = unsigned((out1 + kRows - 1) / kRows);
  const int team = threadIdx.x / kTeam, lane = threadIdx.x % kTeam;
  unsigned rest = blockIdx.x * unsigned(kTeams) + team;
  const int first2 = int(rest % across) * kColumns;
  rest /= across;
  const int first1 = int(rest % down) * kRows;
  rest /= down;
  const int64_t p0 = rest % unsigned(out0);
  rest /= unsigned(out0);
  const int64_t channel = rest % unsigned(channels), n = rest / unsigned(channels);
  const bool live = n < batches;

  const int start0 = int(p0) * kStride0 - kPadding0, above = first1 * kStride1 - kPadding1,
            left = first2 * kStride2 - kPadding2;
  const int height = int(in1), width = int(in2), step1 = int(in_s1), step2 = int(in_s2);
  const int base = left & -kVector;  // the column of the line's first element
  const int begin = max(base, 0), end = live ? min(base + kLine, width) : begin;
  float (&line)[kRows][kLine] = lines[team];

#pragma unroll kUnrollSteps
  for (int step = 0; step < kSteps; ++step) {
    const int column = begin + (step * kTeam + lane) * kVector;
    if (column >= end) continue;
    float sums[kRows][kVector];
    CUTE_UNROLL
    for (int r = 0; r < kRows; ++r)
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v) sums[r][v] = {{initial}};
#pragma unroll kUnrollPlanes
    for (int k0 = 0; k0 < kKernel0; ++k0) {
      const int at0 = start0 + k0 * kDilation0;
      if (at0 < 0 || at0 >= int(in0)) continue;
      const {{input_type}}* plane = {{input}} + n * in_n + channel * in_c + at0 * in_s0 +
                                 (kVector > 1 ? column : column * step2);
#pragma unroll kUnrollRows
      for (int read = 0; read < kReads; ++read) {
        const int i = kRows == 1 ? read * kDilation1 : read, at1 = above + i;
        if (kRows > 1 && !covered(i)) continue;
        float values[kVector];
        CUTE_UNROLL
        for (int v = 0; v < kVector; ++v) values[v] = {{initial}};
        if (unsigned(at1) < unsigned(height))
          cutegen::load(make_tensor(make_gmem_ptr(plane + at1 * step1),
                                    Layout<Int<kVector>, Int<1>>{}), values);
        CUTE_UNROLL
        for (int r = 0; r < kRows; ++r)
          if (kRows == 1 || covers(i, r))
            CUTE_UNROLL
            for (int v = 0; v < kVector; ++v) collect(sums[r][v], values[v]);
      }
    }
    CUTE_UNROLL
    for (int r = 0; r < kRows; ++r)
      cutegen::store(sums[r], make_tensor(make_smem_ptr(&line[r][column - base]),
                                          Layout<Int<kVector>, Int<1>>{}));
  }
  // What windows have beyond the edges.
  const int before = begin - base, after = max(end - base, before);
  for (int i = lane; i < before + kLine - after; i += kTeam)
    CUTE_UNROLL
    for (int r = 0; r < kRows; ++r) line[r][i < before ? i : i - before + after] = {{initial}};
  if constexpr (kTeam <= 32)
    __syncwarp();
  else
    __syncthreads();

  for (int r = 0; r < kRows; ++r) {
    const int64_t p1 = first1 + r;
    if (!live || p1 >= out1) break;
#pragma unroll 4
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kTeam + lane;
      const float* from = &line[r][left - base + min(i, kColumns - 1) * kStride2];
      float window = {{initial}};
#pragma unroll kUnrollColumns
      for (int k2 = 0; k2 < kKernel2; ++k2) collect(window, from[k2 * kDilation2]);
      const int64_t p2 = first2 + i;
      if (i >= kColumns || p2 >= out2) continue;
{{divide}}{{finish}}
    }
  }
}
