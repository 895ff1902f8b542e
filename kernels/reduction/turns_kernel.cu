// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
          {{sizes}}) {
{{turn}}  auto along = {{along}};    // vectors of a row
  auto across = {{across}};  // rows
{{places}}  __shared__ float shared[kThreads / 32 * {{words}}];

  const int lane = threadIdx.x % kWidth;
  const Row clusters = gridDim.x / kCluster;  // distance between the rows of a cluster
  const Index steps = size(along);
  const float count = float(int64_t(steps) * kVector);  // elements of a row
{{range}}
{{fetch}}

  constexpr bool live = true;
  int turn = 0;
  for (Row row = {{block}}; row < size(across); row += clusters, ++turn) {
    // Two buffers alternate, because a CTA may still read the previous turn's.
    float* const in_cluster = in_clusters + turn % 2 * {{all_words}};
    const int head = turn * kGroups % kPlaces;  // where the row begins in shared memory
{{tensors}}
    auto read = [&](Index j) {
      Elements e;
{{loads}}
      return e;
    };
{{body}}
  }

  cutegen::leave_cluster<kCluster>();
}
