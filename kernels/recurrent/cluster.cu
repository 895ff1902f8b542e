// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A cluster of kCtas CTAs takes kRows sequences and walks along their steps. A step needs the whole state of the step
// before it, so every CTA has all states in shared memory. A CTA computes its own part of the next states and writes it
// to all CTAs of the cluster. The weights of a CTA's first `kept` states stay in shared memory; L2 serves the
// other weights.
#include <cutegen/recurrent.cuh>
#include <cutegen/resident.cuh>

using namespace cute;

using Cell = cutegen::{{cell}};
using Element = {{element}};
constexpr int kGates = Cell::kGates;
constexpr int kThreads = {{threads}};
constexpr int kCtas = {{ctas}};
constexpr int kRows = {{rows}};
constexpr int kLanes = {{lanes}};  // threads that share a state
constexpr int kTeams = kThreads / kLanes;
constexpr int kSides = {{sides}};  // directions: the second one walks backwards
constexpr int kPlace = {{place}};  // index of the first side's initial states

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          int64_t steps, int64_t batch, int64_t states, int64_t own, int64_t kept) {
{{locals}}  extern __shared__ float4 shared[];
  const int side = kSides == 1 ? 0 : blockIdx.y;
  const int n = int(states), pitch = (n + 3) / 4 * 4;
  float* const state = reinterpret_cast<float*>(shared);  // [this or next step][sequence][pitch]
  Element* const weights = reinterpret_cast<Element*>(state + 2 * kRows * pitch);  // [state][gate][pitch]
  const int first_state = blockIdx.x % kCtas * int(own);
  const int64_t first_row = int64_t(blockIdx.x) / kCtas * kRows;
  for (int i = threadIdx.x / 32; i < int(kept) * kGates; i += kThreads / 32) {
    const int j = first_state + i / kGates;
    for (int k = threadIdx.x % 32; k < pitch; k += 32)
      weights[i * pitch + k] = j < n && k < n ? weight[(int64_t(i % kGates) * n + j) * n + k] : Element(0.0f);
  }
  for (int b = 0; b < 2 * kRows; ++b) {
    const int64_t row = first_row + b;
    for (int k = threadIdx.x; k < pitch; k += kThreads)
      state[b * pitch + k] =
          first && b < kRows && row < batch && k < n
              ? cutegen::to_float(first[((kPlace + side) * batch + row) * n + k])
              : 0.0f;
  }
  const auto meet = [] {
    if constexpr (kCtas > 1)
      cutegen::cluster_sync();
    else
      __syncthreads();
  };
  meet();

  const int lane = threadIdx.x % kLanes;
  for (int64_t step = 0; step < steps; ++step) {
    const float* const now = state + step % 2 * kRows * pitch;
    float* const next = state + (step + 1) % 2 * kRows * pitch;
    const int64_t time = side == 1 ? steps - 1 - step : step;
    for (int begin = 0; begin < own; begin += kTeams) {
      const int team = begin + threadIdx.x / kLanes;
      const bool live = team < own && first_state + team < n;
      const int u = live ? team : 0, j = live ? first_state + u : 0;
      const int64_t row = first_row + lane;
      const bool mine = live && lane < kRows && row < batch;
      // These loads need no state, so they come first.
      float x[kGates] = {}, cell = 0.0f;
      const int64_t at = {{at}}, end = (side * batch + row) * n + j;
      if (mine) {
        CUTE_UNROLL
        for (int g = 0; g < kGates; ++g) x[g] = inputs[(at * kGates + g) * n + j];
{{load_cell}}      }
      float sums[kGates][kRows] = {}, sum[kGates];
      const Element* const far = weight + int64_t(j) * n;
      if (begin + kTeams <= kept || kept == own)
        cutegen::add_products<kLanes>(sums, weights + u * kGates * pitch, pitch, now, pitch, lane);
      else if (n % 4 == 0)
        cutegen::add_products<kLanes>(sums, far, states * states, now, pitch, lane);
      else
        cutegen::add_products_of_rows<kLanes>(sums, far, states * states, n, now, pitch, lane);
      cutegen::combine_lanes<kLanes>(sums, sum, lane);
      if (bias) {
        CUTE_UNROLL
        for (int g = 0; g < kGates; ++g) sum[g] += cutegen::to_float(bias[g * n + j]);
      }
      const float last_state = lane < kRows ? now[lane * pitch + j] : 0.0f;
      const float h = Cell::next(x, sum, last_state, cell);
      CUTE_UNROLL
      for (int b = 0; b < kRows; ++b) {
        const float value = __shfl_sync(0xffffffffu, h, b, kLanes);
        if constexpr (kCtas == 1) {
          if (live && lane == 0) next[b * pitch + j] = value;
        } else {
          for (int rank = lane; live && rank < kCtas; rank += kLanes)
            cutegen::store_in_cluster(next + b * pitch + j, rank, value);
        }
      }
      if (mine) {
        sequence[(at * kSides + side) * n + j] = cutegen::from_float<Element>(h);
        if (step + 1 == steps) last[end] = cutegen::from_float<Element>(h);
{{store_cell}}      }
    }
    meet();
  }
}
