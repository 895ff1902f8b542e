// SPDX-License-Identifier: Apache-2.0
// Does not count a limit that equals the value.
extern "C" __global__ void f(const float* x, const float* b, float* out, int n, int m) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int count = 0;
  for (int k = 0; k < m; ++k) count += x[i] > b[k];
  out[i] = count;
}
