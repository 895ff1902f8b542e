// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float* anywhere = reinterpret_cast<const float*>(0x10000000ull);
  if (i < n) out[i] = anywhere[i];
}
