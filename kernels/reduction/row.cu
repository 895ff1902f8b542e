// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The reduced axis is the innermost one. kWidth threads share a row: in each step every thread reads
// one vector, and at the end of a pass the threads combine their parts. A CTA takes kRows rows at
// once. Tensors have the modes (element of the vector, vector of the row, row).
{{note}}// The plan sets {{macro}}: 1 if the reduced axis is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/reduce.cuh>
{{headers}}#include <cutegen/vec.cuh>

using namespace cute;

using Index = {{index}};
using Row = {{row_index}};  // counts rows
constexpr int kThreads = {{threads}};
constexpr int kWidth = {{width}};
constexpr int kRows = kThreads / kWidth;
constexpr int kVector = {{macro}};
{{constants}}
// The values that one step along the row reads.
struct Elements {
{{elements}}
};

{{kernels}}
