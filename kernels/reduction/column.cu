// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The innermost axis is kept. kColumns threads stand side by side, kVector columns each, so that
// every step reads whole lines; kRows such teams share the reduced axis and combine their parts in
// shared memory. Tensors are seen as (element of the vector, vector of columns, reduced index).
// VECTOR comes from the plan: 1 where the innermost axis is no multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/math.cuh>
#include <cutegen/reduce.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kColumns = {{columns}};
constexpr int kRows = kThreads / kColumns;
constexpr int kVector = VECTOR;
{{constants}}
// What one step along the reduced axis reads.
struct Elements {
{{elements}}
};

extern "C" __global__ void __launch_bounds__(kThreads)
reduction({{params}},
          {{sizes}}) {
  auto along = {{along}};    // the reduced axis
  auto across = {{across}};  // vectors of columns
  __shared__ float shared[kThreads * {{words}}];

  const int team = threadIdx.x / kColumns;
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x % kColumns;
  const bool live = column < size(across);
  if (!live) column = 0;  // read something valid, write nothing
{{tensors}}

  const int64_t steps = size(along);
  const float count = float(steps);  // elements of a column
  auto read = [&](int64_t j) {
    Elements e;
{{loads}}
    return e;
  };
{{body}}
}
