// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A CTA sorts each row in shared memory. Keys of 64 bits hold an element and its position.
// The plan sets {{macro}}: 1 if the row is not a multiple of the vector.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/order.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

using Index = int;
constexpr int kThreads = {{threads}};
constexpr int kVector = {{macro}};
constexpr bool kLargest = {{largest}};

// The values that one step along the row reads.
struct Elements {
{{elements}}
};

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          {{sizes}}) {
  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
  __shared__ {{key}} keys[{{capacity}}];

  const int lane = threadIdx.x;
  const int64_t row = blockIdx.x;
{{tensors}}

  const Index steps = size(along);
  const float count = float(int64_t(steps) * kVector);  // elements of a row
  auto read = [&](Index j) {
    Elements e;
{{loads}}
    return e;
  };
{{rows}}
  const int length = steps * kVector;
  int padded = 1;
  while (padded < length) padded *= 2;
  for (Index j = lane; j < steps; j += kThreads) {
    const Elements e = read(j);
    CUTE_UNROLL
    for (int v = 0; v < kVector; ++v) {
{{values}}
      keys[j * kVector + v] = cutegen::key_of<kLargest>({{value}}, unsigned(j) * kVector + v);
    }
  }
  for (int i = length + lane; i < padded; i += kThreads) keys[i] = {};
  cutegen::sort_keys(keys, padded);
  for (int i = lane; i < {{count}}; i += kThreads) {
    const {{key}} first = keys[i];
{{stores}}
  }
}
