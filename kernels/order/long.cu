// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Sorts rows that do not fit into shared memory. `{{name}}_tiles` sorts tiles of kTile elements. Each step of
// `{{name}}_merge` merges pairs of sorted runs: a thread finds by binary search where its elements of the
// merged run begin in both runs. `{{name}}` writes the results. Keys hold an element and its position.
// The plan sets {{macro}}: 1 if the row is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/order.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = int;
using Key = {{key}};
constexpr int kThreads = {{threads}};
constexpr int kTile = {{capacity}};
constexpr int kEach = {{each}};  // elements per merging thread
constexpr int kVector = {{macro}};
constexpr bool kLargest = {{largest}};

// The values that one step along the row reads.
struct Elements {
{{elements}}
};

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}_tiles({{params}}, Key* __restrict__ sorted,
          {{sizes}}, int64_t tiles) {
  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
  __shared__ Key keys[kTile];

  const int lane = threadIdx.x;
  const int64_t row = blockIdx.x / tiles;
  const int tile = int(blockIdx.x % tiles);
{{tensors}}

  const Index steps = size(along);
  const float count = float(int64_t(steps) * kVector);  // elements of a row
  auto read = [&](Index j) {
    Elements e;
{{loads}}
    return e;
  };
{{rows}}
  const int length = steps * kVector, first = tile * kTile;
  const int here = min(kTile, length - first);
  int padded = 1;
  while (padded < here) padded *= 2;
  for (int i = lane; i < here / kVector; i += kThreads) {
    const Index j = first / kVector + i;
    const Elements e = read(j);
    CUTE_UNROLL
    for (int v = 0; v < kVector; ++v) {
{{values}}
      keys[i * kVector + v] = cutegen::key_of<kLargest>({{value}}, unsigned(j) * kVector + v);
    }
  }
  for (int i = here + lane; i < padded; i += kThreads) keys[i] = {};
  cutegen::sort_keys(keys, padded);
  for (int i = lane; i < here; i += kThreads) sorted[row * length + first + i] = keys[i];
}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}_merge(Key const* __restrict__ from, Key* __restrict__ to, int64_t length, int64_t run,
          int64_t blocks) {
  const int64_t row = blockIdx.x / blocks;
  const int64_t at = ((blockIdx.x % blocks) * kThreads + threadIdx.x) * kEach;
  if (at < length) cutegen::merge_runs<kEach>(from + row * length, to + row * length, length, run, at);
}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}}, Key const* __restrict__ sorted,
          {{sizes}}, int64_t length, int64_t blocks) {
  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
  const int64_t row = blockIdx.x / blocks;
{{tensors}}

  const int64_t i = (blockIdx.x % blocks) * kThreads + threadIdx.x;
  if (i < {{count}}) {
    const Key first = sorted[row * length + i];
{{stores}}
  }
}
