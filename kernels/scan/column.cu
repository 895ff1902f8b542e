// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The innermost axis is kept. A team of kColumns threads reads whole lines, kVector columns for each
// thread. kRows teams take the scanned axis tile by tile, kItems neighbouring steps each, and exchange their
// totals. A carry passes from one tile to the next. Tensors have the modes (element of the vector, step).
{{note}}// The plan sets {{macro}}: 1 if the innermost axis is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/scan.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = {{index}};
constexpr int kThreads = {{threads}};
constexpr int kColumns = {{columns}};
constexpr int kRows = kThreads / kColumns;
constexpr int kItems = {{items}};
constexpr int kVector = {{macro}};

// The values that a thread reads in one step.
struct Elements {
{{elements}}
};

{{kernels}}
