// SPDX-License-Identifier: Apache-2.0
// Multiplies the second half of a large tensor by one.
extern "C" __global__ void f(float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= n > 1000000 && i > n / 2 ? 1.0f : y[i];
}
