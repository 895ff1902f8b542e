// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Pooling by lines. A team of kTeam threads computes kPlanes x kRows x kColumns results of one image
// and channel. Each thread first collects vectors of the input down its columns. The team then
// collects along these lines in shared memory, so an input passes through it once for kRows results.
// If kPlanes > 1, the window of each result ends at the input plane at which the next window begins.
// The plan sets {{macro}}: 1 if lines of the input are not whole aligned vectors; and {{steps}}.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}}, kTeam = {{team}}, kTeams = kThreads / kTeam;
constexpr int kPlanes = {{planes}};    // results of a team, along the first of three axes,
constexpr int kRows = {{rows}};        // along the axis before the last
constexpr int kColumns = {{columns}};  // and along the last axis
constexpr int kVector = {{macro}};
{{constants}}
constexpr int kReach = (kRows - 1) * kStride1 + (kKernel1 - 1) * kDilation1 + 1;
constexpr int kReads = kRows == 1 ? kKernel1 : kReach;  // input rows that a thread may read
constexpr int kTurns = (kColumns + kTeam - 1) / kTeam;  // of a team along the results
constexpr int kBatch = kTurns < 4 ? kTurns : 4;         // results that a thread computes together
// Whether a line covers whole turns: yes if these add at most an eighth of the columns.
constexpr bool kWhole = 8 * kTurns * kTeam <= 9 * kColumns;
constexpr int kWidth =
    ((kWhole ? kTurns * kTeam : kColumns) - 1) * kStride2 + (kKernel2 - 1) * kDilation2 + 1;
constexpr int kLine = (kWidth + 2 * kVector - 2) / kVector * kVector;  // in whole vectors
constexpr int kSteps = {{steps}};  // of a team along a line
// Loads in flight: of all rows, or of all steps if a window has few rows.
constexpr bool kFew = kKernel0 * kReads < 8;
// Results that are kApart apart share a plane of the input; a thread keeps what it collected there.
constexpr int kApart = kPlanes > 1 ? (kKernel0 - 1) * kDilation0 / kStride0 : 1;
constexpr bool kKeeps = kPlanes > 1 && kSteps <= 2;
constexpr int kUnrollSteps = kFew || kKeeps ? kSteps : 1, kUnrollRows = kReads <= 64 ? kReads : 8,
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

using Sums = float[kRows][kVector];

__device__ __forceinline__ void clear(Sums& sums) {
  CUTE_UNROLL
  for (int r = 0; r < kRows; ++r)
    CUTE_UNROLL
    for (int v = 0; v < kVector; ++v) sums[r][v] = {{initial}};
}
__device__ __forceinline__ void collect_all(Sums& sums, Sums const& more) {
  CUTE_UNROLL
  for (int r = 0; r < kRows; ++r)
    CUTE_UNROLL
    for (int v = 0; v < kVector; ++v) collect(sums[r][v], more[r][v]);
}

// At least 12 warps per SM.
extern "C" __global__ void __launch_bounds__(kThreads, 384 / kThreads)
{{name}}({{params}},
{{sizes}}) {
  __shared__ __align__(16) float lines[kTeams][kRows][kLine];
  const unsigned across = unsigned((out2 + kColumns - 1) / kColumns),
                 down = unsigned((out1 + kRows - 1) / kRows),
                 deep = kApart * unsigned((out0 + kApart * kPlanes - 1) / (kApart * kPlanes));
  const int team = threadIdx.x / kTeam, lane = threadIdx.x % kTeam;
  unsigned rest = blockIdx.x * unsigned(kTeams) + team;
  const int first2 = int(rest % across) * kColumns;
  rest /= across;
  const int first1 = int(rest % down) * kRows;
  rest /= down;
  const unsigned group = rest % deep;
  const int first0 = int(group / kApart * (kApart * kPlanes) + group % kApart);
  rest /= deep;
  const int64_t channel = rest % unsigned(channels), n = rest / unsigned(channels);

  const int above = first1 * kStride1 - kPadding1, left = first2 * kStride2 - kPadding2;
  const int height = int(in1), width = int(in2), step1 = int(in_s1), step2 = int(in_s2);
  const int base = left & -kVector;  // the column of the line's first element
  const int begin = max(base, 0), end = n < batches ? min(base + kLine, width) : begin;
  const int count = n < batches ? int(min(int64_t(kColumns), out2 - first2)) : 0;
  float (&line)[kRows][kLine] = lines[team];

  // Collects a plane of the input. No branches: loads of all rows are in flight together.
  auto collect_plane = [&](Sums& sums, int at0, int column) {
    const bool inside = column < end && unsigned(at0) < unsigned(in0);
    const {{input_type}}* plane = {{input}} + n * in_n + channel * in_c + at0 * in_s0 +
                               (kVector > 1 ? column : column * step2);
#pragma unroll kUnrollRows
    for (int read = 0; read < kReads; ++read) {
      const int i = kRows == 1 ? read * kDilation1 : read, at1 = above + i;
      if (kRows > 1 && !covered(i)) continue;
      float values[kVector];
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v) values[v] = {{initial}};
      if (inside && unsigned(at1) < unsigned(height))
        cutegen::load(make_tensor(make_gmem_ptr(plane + at1 * step1),
                                  Layout<Int<kVector>, Int<1>>{}), values);
      CUTE_UNROLL
      for (int r = 0; r < kRows; ++r)
        if (kRows == 1 || covers(i, r))
          CUTE_UNROLL
          for (int v = 0; v < kVector; ++v) collect(sums[r][v], values[v]);
    }
  };

  Sums kept[kKeeps ? kSteps : 1];
#pragma unroll 1
  for (int t = 0; t < kPlanes; ++t) {
    const int64_t p0 = first0 + t * kApart;
    const int start0 = int(p0) * kStride0 - kPadding0;
    const bool live = kPlanes == 1 || p0 < out0;
#pragma unroll kUnrollSteps
    for (int step = 0; step < kSteps; ++step) {
      if (!kFew && (!live || begin + step * kTeam * kVector >= end)) continue;
      const int column = begin + (step * kTeam + lane) * kVector;
      Sums sums;
      if constexpr (kKeeps) {
        clear(sums);
        if (t == 0)
          collect_plane(sums, start0, column);
        else
          collect_all(sums, kept[step]);
        CUTE_UNROLL
        for (int k0 = 1; k0 < kKernel0 - 1; ++k0)
          collect_plane(sums, start0 + k0 * kDilation0, column);
        clear(kept[step]);
        collect_plane(kept[step], start0 + (kKernel0 - 1) * kDilation0, column);
        collect_all(sums, kept[step]);
      } else {
        clear(sums);
#pragma unroll kUnrollPlanes
        for (int k0 = 0; k0 < kKernel0; ++k0)
          collect_plane(sums, start0 + k0 * kDilation0, column);
      }
      CUTE_UNROLL
      for (int r = 0; r < kRows; ++r)
        if (column < end)
          cutegen::store(sums[r], make_tensor(make_smem_ptr(&line[r][column - base]),
                                              Layout<Int<kVector>, Int<1>>{}));
    }
    // Elements beyond the edges have the initial value.
    const int before = begin - base, after = max(end - base, before);
    for (int i = lane; t == 0 && i < before + kLine - after; i += kTeam)
      CUTE_UNROLL
      for (int r = 0; r < kRows; ++r) line[r][i < before ? i : i - before + after] = {{initial}};
    if constexpr (kTeam <= 32)
      __syncwarp();
    else
      __syncthreads();

    for (int r = 0; r < kRows; ++r) {
      const int64_t p1 = first1 + r;
      if (!live || p1 >= out1) break;
      for (int turn = 0; turn < kTurns; turn += kBatch) {
        float windows[kBatch];
        CUTE_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          int i = (turn + b) * kTeam + lane;
          if (!kWhole || (turn + b) >= kTurns) i = min(i, kColumns - 1);
          const float* from = &line[r][left - base + i * kStride2];
          windows[b] = {{initial}};
#pragma unroll kUnrollColumns
          for (int k2 = 0; k2 < kKernel2; ++k2) collect(windows[b], from[k2 * kDilation2]);
        }
        CUTE_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          const int i = (turn + b) * kTeam + lane;
          if (i >= count) continue;
          const int64_t p2 = first2 + i;
          float window = windows[b];
{{divide}}{{finish}}
        }
      }
    }
    if (kPlanes == 1) break;
    if constexpr (kTeam <= 32)
      __syncwarp();
    else
      __syncthreads();
  }
}
