// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Finds the first n elements of each row in sorted order; a CTA takes a row. Each thread finds the first of its own
// elements. The n-th of these elements is a bound: no element behind the bound is among the first n of the row. The CTA
// therefore sorts only elements that are not behind the bound. If these elements do not fit or n > kThreads, the
// threads agree on one element after another.
// The plan sets {{macro}}: 1 if the row is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/order.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = int;
constexpr int kThreads = {{threads}};
constexpr int kWidth = kThreads;
constexpr int kVector = {{macro}};
constexpr int kCapacity = 2048;  // elements that the CTA can sort
constexpr bool kLargest = {{largest}};

// The values that one step along the row reads.
struct Elements {
{{elements}}
};

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          {{sizes}}) {
  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
  __shared__ float shared[kThreads / 32 * 2];
  __shared__ cutegen::Key keys[kCapacity];
  __shared__ int found;

  const int lane = threadIdx.x;
  const int64_t row = blockIdx.x;
{{tensors}}

  const Index steps = size(along);
  const float count = float(int64_t(steps) * kVector);  // elements of a row
  auto read = [&](Index j) {
    Elements e;
{{loads}}
    return e;
  };
{{rows}}
  // Passes each of this thread's elements to `take`.
  auto each = [&](auto&& take) {
    #pragma unroll 4
    for (Index j = lane; j < steps; j += kWidth) {
      const Elements e = read(j);
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v) {
{{values}}
        take(cutegen::key_of<kLargest>({{value}}, unsigned(j) * kVector + v));
      }
    }
  };
  cutegen::Key mine;
  each([&](cutegen::Key const& key) { mine.merge(key); });
  const int wanted = {{count}};
  if (wanted <= kThreads) {
    keys[lane] = mine;
    if (lane == 0) found = 0;
    cutegen::sort_keys(keys, kThreads);
    const cutegen::Key last = keys[wanted - 1];
    __syncthreads();
    if (!last.before(mine))
      each([&](cutegen::Key const& key) {
        if (last.before(key)) return;
        const int at = atomicAdd(&found, 1);
        if (at < kCapacity) keys[at] = key;
      });
    __syncthreads();
    const int candidates = found;
    if (candidates <= kCapacity) {
      int padded = 2;
      while (padded < candidates) padded *= 2;
      for (int i = candidates + lane; i < padded; i += kThreads) keys[i] = {};
      cutegen::sort_keys(keys, padded);
      for (int i = lane; i < wanted; i += kThreads) {
        const cutegen::Key first = keys[i];
{{stores}}
      }
      return;
    }
  }
  for (int i = 0; i < wanted; ++i) {
    cutegen::Key first = mine;
    cutegen::combine_row<kWidth>(first, shared);
    if (lane == i % kWidth) {
{{stores}}
    }
    if (first.whole() != mine.whole()) continue;
    mine = {};
    each([&](cutegen::Key const& key) {
      if (first.before(key)) mine.merge(key);
    });
  }
}
