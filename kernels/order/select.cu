// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Finds the first elements of each row in sorted order. kWidth threads share a row. Each thread finds the first of its
// own elements, and the threads agree on the first of all. The thread with this element then finds its next element.
// The plan sets {{macro}}: 1 if the row is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/order.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = int;
constexpr int kThreads = {{threads}};
constexpr int kWidth = {{width}};
constexpr int kRows = kThreads / kWidth;
constexpr int kVector = {{macro}};
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

  const int lane = threadIdx.x % kWidth;
  int64_t row = int64_t(blockIdx.x) * kRows + threadIdx.x / kWidth;
  const bool live = row < size(across);
  if (!live) row = 0;  // read something valid, write nothing
{{tensors}}

  const Index steps = size(along);
  const float count = float(int64_t(steps) * kVector);  // elements of a row
  auto read = [&](Index j) {
    Elements e;
{{loads}}
    return e;
  };
{{rows}}
  // This thread's first element behind `bound`, in the order of keys.
  auto next = [&](cutegen::Key bound, bool bounded) {
    cutegen::Key first;
    for (Index j = lane; j < steps; j += kWidth) {
      const Elements e = read(j);
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v) {
{{values}}
        const cutegen::Key key = cutegen::key_of<kLargest>({{value}}, unsigned(j) * kVector + v);
        if (!bounded || bound.before(key)) first.merge(key);
      }
    }
    return first;
  };
  cutegen::Key mine = next({}, false);
  for (int i = 0; i < {{count}}; ++i) {
    cutegen::Key first = mine;
    cutegen::combine_row<kWidth>(first, shared);
    if (live && lane == i % kWidth) {
{{stores}}
    }
    if (first.whole() == mine.whole()) mine = next(first, true);
  }
}
