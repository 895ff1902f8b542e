// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Splits {{a}} and {{b}} into pairs of half-precision matrices, the operands of a product on tensor cores.
// The plan sets VECTOR_*: 1 if a size is not a multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/half_pairs.cuh>

using namespace cute;

// Finds the largest magnitude of each operand.
extern "C" __global__ void __launch_bounds__(cutegen::kSplitThreads, 2)
{{range}}(float const* __restrict__ a, float const* __restrict__ b, unsigned* __restrict__ control,
       {{sizes}}) {
{{tensors}}
  cutegen::find_largest<{{order_a}}>(rows, 0, control);
  cutegen::find_largest<{{order_b}}>(columns, 1, control);
}

// Scales and splits the operands. Sets control[0] if the pairs are not as accurate as float32.
extern "C" __global__ void __launch_bounds__(cutegen::kSplitThreads, 2)
{{split}}(float const* __restrict__ a, float const* __restrict__ b, half_t* __restrict__ pairs_a,
       half_t* __restrict__ pairs_b, unsigned* __restrict__ control,
       {{sizes}}) {
{{tensors}}
  const cutegen::SplitScales scales(control);
  cutegen::split_pairs<{{order_a}}>(rows, 0, scales, pairs_a, control);
  cutegen::split_pairs<{{order_b}}>(columns, 1, scales, pairs_b, control);
}
