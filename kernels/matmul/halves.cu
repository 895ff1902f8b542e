// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Rounds {{a}} and {{b}} to half precision, the operands of a product on tensor cores.
// The plan sets VECTOR_*: 1 if a size is not a multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/half_pairs.cuh>

using namespace cute;

// Sets control[0] if halves are not as accurate as tf32.
extern "C" __global__ void __launch_bounds__(cutegen::kSplitThreads, 2)
{{split}}(float const* __restrict__ a, float const* __restrict__ b, half_t* __restrict__ pairs_a,
       half_t* __restrict__ pairs_b, unsigned* __restrict__ control,
       {{sizes}}) {
{{tensors}}
  const cutegen::SplitScales scales;
  cutegen::split_pairs<{{order_a}}, 1>(rows, 0, scales, pairs_a, control);
  cutegen::split_pairs<{{order_b}}, 1>(columns, 1, scales, pairs_b, control);
}
