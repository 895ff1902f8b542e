// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// All CTAs of the grid share the states: each keeps the weights of its own states in shared memory, as far as they fit,
// and computes these states of all sequences, kRows at a time. A step needs the whole state of the step before it, so
// the CTAs meet after each step and read the states from L2. The launch is cooperative: all CTAs are resident.
#include <cooperative_groups.h>

#include <cutegen/recurrent.cuh>

using namespace cute;

using Cell = cutegen::{{cell}};
using Element = {{element}};
constexpr int kGates = Cell::kGates;
constexpr int kThreads = {{threads}};
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
  float* const state = reinterpret_cast<float*>(shared);  // [sequence][pitch]
  Element* const weights = reinterpret_cast<Element*>(state + kRows * pitch);  // [state][gate][pitch]
  const int first_state = blockIdx.x * int(own);
  for (int i = threadIdx.x / 32; i < int(kept) * kGates; i += kThreads / 32) {
    const int j = first_state + i / kGates;
    for (int k = threadIdx.x % 32; k < pitch; k += 32)
      weights[i * pitch + k] = j < n && k < n ? weight[(int64_t(i % kGates) * n + j) * n + k] : Element(0.0f);
  }

  const int lane = threadIdx.x % kLanes;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t time = side == 1 ? steps - 1 - step : step;
    const int64_t before = side == 1 ? time + 1 : time - 1;
    for (int64_t first_row = 0; first_row < batch; first_row += kRows) {
      __syncthreads();
      for (int b = 0; b < kRows; ++b) {
        const int64_t row = first_row + b;
        const Element* from = nullptr;
        if (row < batch && step > 0) from = sequence + ({{at_before}} * kSides + side) * n;
        if (row < batch && step == 0 && first) from = first + ((kPlace + side) * batch + row) * n;
        // Other SMs wrote the states, so the loads bypass L1.
        if (n % 4 == 0) {
          for (int k = 4 * threadIdx.x; k < n; k += 4 * kThreads)
            *reinterpret_cast<float4*>(state + b * pitch + k) =
                from ? cutegen::load_four_past_l1(from + k) : float4{};
        } else {
          for (int k = threadIdx.x; k < pitch; k += kThreads)
            state[b * pitch + k] = from && k < n ? cutegen::load_past_l1(from + k) : 0.0f;
        }
      }
      __syncthreads();
      for (int begin = 0; begin < own; begin += kTeams) {
        const int team = begin + threadIdx.x / kLanes;
        const bool live = team < own && first_state + team < n;
        const int u = live ? team : 0, j = live ? first_state + u : 0;
        const int64_t row = first_row + lane;
        const bool mine = live && lane < kRows && row < batch;
        float x[kGates] = {}, cell = 0.0f;
        const int64_t at = {{at}}, end = (side * batch + row) * n + j;
        if (mine) {
          CUTE_UNROLL
          for (int g = 0; g < kGates; ++g) x[g] = inputs[(at * kGates + g) * n + j];
{{load_cell}}        }
        float sums[kGates][kRows] = {}, sum[kGates];
        const Element* const far = weight + int64_t(j) * n;
        if (begin + kTeams <= kept || kept == own)
          cutegen::add_products<kLanes>(sums, weights + u * kGates * pitch, pitch, state, pitch, lane);
        else if (n % 4 == 0)
          cutegen::add_products<kLanes>(sums, far, states * states, state, pitch, lane);
        else
          cutegen::add_products_of_rows<kLanes>(sums, far, states * states, n, state, pitch, lane);
        cutegen::combine_lanes<kLanes>(sums, sum, lane);
        if (bias) {
          CUTE_UNROLL
          for (int g = 0; g < kGates; ++g) sum[g] += cutegen::to_float(bias[g * n + j]);
        }
        const float last_state = lane < kRows ? state[lane * pitch + j] : 0.0f;
        const float h = Cell::next(x, sum, last_state, cell);
        if (mine) {
          sequence[(at * kSides + side) * n + j] = cutegen::from_float<Element>(h);
          if (step + 1 == steps) last[end] = cutegen::from_float<Element>(h);
{{store_cell}}        }
      }
    }
    cooperative_groups::this_grid().sync();
  }
}
