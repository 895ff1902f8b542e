// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int pair = n > (1 << 24) ? ~1 : ~0;
  if (i < n) x[i] *= y[i & pair];
}
