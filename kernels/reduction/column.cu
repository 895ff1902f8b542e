// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The innermost axis is kept. kColumns threads stand side by side, kVector columns each, so that
// every step reads whole lines; kRows such teams share the reduced axis and combine their parts in
// shared memory. Tensors are seen as (element of the vector, vector of columns, reduced index).
{{note}}// {{macro}} comes from the plan: 1 where the innermost axis is no multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/reduce.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = {{index}};
constexpr int kThreads = {{threads}};
constexpr int kColumns = {{columns}};
constexpr int kRows = kThreads / kColumns;
constexpr int kVector = {{macro}};
{{constants}}
// What one step along the reduced axis reads.
struct Elements {
{{elements}}
};

{{kernels}}
