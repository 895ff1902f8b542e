// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The innermost axis is kept. A team of kColumns threads reads whole lines, kVector columns for each
// thread. kRows teams share the reduced axis and combine their parts in shared memory. Tensors have
// the modes (element of the vector, vector of columns, reduced index).
{{note}}// The plan sets {{macro}}: 1 if the innermost axis is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/reduce.cuh>
{{headers}}#include <cutegen/vec.cuh>

using namespace cute;

using Index = {{index}};
using Row = {{row_index}};  // counts rows
constexpr int kThreads = {{threads}};
constexpr int kColumns = {{columns}};
constexpr int kRows = kThreads / kColumns;
constexpr int kVector = {{macro}};
{{constants}}
// The values that one step along the reduced axis reads.
struct Elements {
{{elements}}
};

{{kernels}}
