// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          {{sizes}}) {
{{turn}}  auto along = {{along}};    // the reduced axis
  auto across = {{across}};  // vectors of columns
{{places}}  __shared__ float shared[cutegen::ColumnGroups<kColumns, kThreads, kVector, {{words}}>::kFloats];

  const int team = threadIdx.x / kColumns;
  Row column = Row({{block}}) * kColumns + threadIdx.x % kColumns;
  const bool live = column < size(across);
  if (!live) column = 0;  // read something valid, write nothing
{{tensors}}

  const Index steps = size(along);
  const float count = float(steps);  // elements of a column
{{range}}
  auto read = [&](Index j) {
    Elements e;
{{loads}}
    return e;
  };
{{body}}
}
