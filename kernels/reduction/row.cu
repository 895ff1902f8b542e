// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The reduced axis is the innermost one. kWidth threads share a row: they walk along it together, a
// vector each, and combine their parts at the end of a pass. A CTA takes kRows rows at once.
// Tensors are seen as (element of the vector, vector of the row, row).
{{note}}// {{macro}} comes from the plan: 1 where the reduced axis is no multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/reduce.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = {{index}};
constexpr int kThreads = {{threads}};
constexpr int kWidth = {{width}};
constexpr int kRows = kThreads / kWidth;
constexpr int kVector = {{macro}};
{{constants}}
// What one step along the row reads.
struct Elements {
{{elements}}
};

{{kernels}}
