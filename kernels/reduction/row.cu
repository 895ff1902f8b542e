// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The reduced axis is the innermost one. kWidth threads share a row: they walk along it together, a
// vector each, and combine their parts at the end of a pass. A CTA takes kRows rows at once.
// Tensors are seen as (element of the vector, vector of the row, row).
// VECTOR comes from the plan: 1 where the reduced axis is no multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/math.cuh>
#include <cutegen/reduce.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kWidth = {{width}};
constexpr int kRows = kThreads / kWidth;
constexpr int kVector = VECTOR;
{{constants}}
// What one step along the row reads.
struct Elements {
{{elements}}
};

extern "C" __global__ void __launch_bounds__(kThreads)
reduction({{params}},
          {{sizes}}) {
  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
  __shared__ float shared[kThreads / 32 * {{words}}];

  const int lane = threadIdx.x % kWidth;
  int64_t row = int64_t(blockIdx.x) * kRows + threadIdx.x / kWidth;
  const bool live = row < size(across);
  if (!live) row = 0;  // read something valid, write nothing
{{tensors}}

  const int64_t steps = size(along);
  const float count = float(steps * kVector);  // elements of a row
  auto read = [&](int64_t j) {
    Elements e;
{{loads}}
    return e;
  };
{{body}}
}
