// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Every operand is read where the result is written, so all tensors are one flat row of vectors,
// (element of the vector, vector). A thread takes kItems vectors that lie kThreads apart, so that
// neighbouring threads always touch neighbouring vectors.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kVector = {{vector}};
constexpr int kItems = {{items}};

// One element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}}, {{sizes}}) {
  const int64_t vectors = n / kVector;
  auto flat = make_layout(make_shape(Int<kVector>{}, vectors), make_stride(Int<1>{}, Int<kVector>{}));
{{tensors}}

  const int64_t step = int64_t(gridDim.x) * kThreads * kItems;
  for (int64_t first = int64_t(blockIdx.x) * kThreads * kItems + threadIdx.x; first < vectors;
       first += step) {
    // All loads first: they are in flight together.
{{registers}}
    CUTE_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int64_t j = first + i * kThreads;
      if (j < vectors) {
{{loads}}
      }
    }
    CUTE_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int64_t j = first + i * kThreads;
      if (j < vectors) {
{{results}}
        CUTE_UNROLL
        for (int v = 0; v < kVector; ++v) {{call}}
{{stores}}
      }
    }
  }
{{tail}}
}
