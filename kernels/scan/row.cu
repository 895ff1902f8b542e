// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// The scanned axis is the innermost one. kWidth threads share a row and take it tile by tile: each
// reads kItems vectors of a tile, then the threads exchange their totals. A carry passes from one tile to the
// next. Tensors have the modes (element of the vector, vector of the row).
{{note}}// The plan sets {{macro}}: 1 if the scanned axis is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/scan.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = {{index}};
constexpr int kThreads = {{threads}};
constexpr int kWidth = {{width}};
constexpr int kRows = kThreads / kWidth;
constexpr int kItems = {{items}};
constexpr int kVector = {{macro}};

// The values that a thread reads for one vector.
struct Elements {
{{elements}}
};

{{kernels}}
