// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A result needs only the operands' elements at its own index, so every tensor is one flat row of vectors with the
// modes (element of the vector, vector). A thread takes kItems vectors at a distance of kThreads, so
// that neighbouring threads access neighbouring vectors.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
{{includes}}#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kVector = {{vector}};
constexpr int kItems = {{items}};

// Computes one element in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}}, {{sizes}}) {
{{begin}}  const int64_t vectors = n / kVector;
  auto flat = make_layout(make_shape(Int<kVector>{}, vectors), make_stride(Int<1>{}, Int<kVector>{}));
{{tensors}}

  const int64_t step = int64_t(gridDim.x) * kThreads * kItems;
  for (int64_t first = int64_t(blockIdx.x) * kThreads * kItems + threadIdx.x; first < vectors;
       first += step) {
    // All loads come first, so that they are in flight together.
{{registers}}
    CUTE_UNROLL
    for (int i = 0; i < kItems; ++i) {
{{loads}}
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
{{end}}}
