// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  for (int start = int(blockIdx.x) * 1024, once = 1; once != 0; once = 0)
    for (int j = 0; j < 4; ++j) {
      const int i = start + j * 256 + int(threadIdx.x);
      if (i < n) out[i] = fmaxf(x[i], 0.0f) + 1.0f;
    }
}
