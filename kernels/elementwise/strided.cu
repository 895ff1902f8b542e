// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Some operands are broadcast or transposed. All tensors have the same modes, (element of the
// vector, (innermost axis in vectors, ..., outermost axis)), and their own strides. A broadcast axis
// has stride 0. place() or CuTe converts the number of a vector into coordinates.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
{{includes}}#include <cutegen/vec.cuh>

using namespace cute;

using Index = {{index}};
constexpr int kThreads = {{threads}};
{{vector}}constexpr int kItems = {{items}};

// Computes one element in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
            {{sizes}}) {
{{begin}}  auto shape = {{shape}};
{{tensors}}

{{vectors}}  const Index first = Index(blockIdx.x) * {{tile}} + threadIdx.x;
{{registers}}
{{shared}}  CUTE_UNROLL
  for (int i = 0; i < kItems; ++i) {
{{loads}}
  }
{{taken}}  CUTE_UNROLL
  for (int i = 0; i < kItems; ++i) {
    const Index j = {{number}};
    if ({{live}}) {
{{results}}
      CUTE_UNROLL
      for (int v = 0; v < kVector; ++v) {{call}}
{{stores}}
    }
  }
{{end}}}
