// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          {{sizes}}) {
{{turn}}  auto along = {{along}};    // the scanned axis
  auto across = {{across}};  // vectors of columns
{{shared}}

  const int team = threadIdx.x / kColumns;
  int64_t column = int64_t({{block}}) * kColumns + threadIdx.x % kColumns;
  const bool live = column < size(across);
  if (!live) column = 0;  // read something valid, write nothing
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
