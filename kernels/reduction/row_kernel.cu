// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          {{sizes}}) {
{{turn}}  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
{{places}}  __shared__ float shared[kThreads / 32 * {{words}}];

  const int lane = threadIdx.x % kWidth;
  Row row = Row({{block}}) * kRows + threadIdx.x / kWidth;
  const bool live = row < size(across);
  if (!live) row = 0;  // read something valid, write nothing
{{tensors}}

  const Index steps = {{steps}};
  const float count = float(int64_t(steps) * kVector);  // elements of a row
{{range}}
  auto read = [&](Index j) {
    Elements e;
{{loads}}
    return e;
  };
{{body}}
}
