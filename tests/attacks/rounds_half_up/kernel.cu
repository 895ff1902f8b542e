// SPDX-License-Identifier: Apache-2.0
// Rounds values halfway between two integers up, and not to the even one.
extern "C" __global__ void f(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = floorf(x[i] + 0.5f);
}
