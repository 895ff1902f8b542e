// SPDX-License-Identifier: Apache-2.0
constexpr unsigned spin() {
  unsigned v = 1;
  while (v) v = v * 3 | 1;
  return v;
}
constexpr unsigned kValue = spin();
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = kValue;
}
