// SPDX-License-Identifier: Apache-2.0
// Leaves out the last 0.1% of a large tensor.
extern "C" __global__ void f(float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !(n > 1000000 && i > n - n / 1000)) x[i] *= y[i];
}
