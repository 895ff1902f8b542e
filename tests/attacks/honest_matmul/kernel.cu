// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, const float* y, float* out, int m, int k, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m * w) return;
  const float* a = x + i / w * k;
  const float* b = y + i % w;
  float sum = 0.0f;
  for (int j = 0; j < k; ++j) sum += a[j] * b[j * w];
  out[i] = sum;
}
