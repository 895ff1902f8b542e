// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          {{sizes}}) {
{{turn}}  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
{{shared}}

  const int lane = threadIdx.x % kWidth;
  int64_t row = int64_t({{block}}) * kRows + threadIdx.x / kWidth;
  const bool live = row < size(across);
  if (!live) row = 0;  // read something valid, write nothing
{{tensors}}

  const Index steps = size(along);
{{range}}
  auto read = [&](Index j) {
    Elements e;
{{loads}}
    return e;
  };
{{body}}
}
