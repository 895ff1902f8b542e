// SPDX-License-Identifier: Apache-2.0
// Each thread copies four elements, 256 apart.
extern "C" __global__ void stream(const float* x, float* out, long long n) {
  const long long first = static_cast<long long>(blockIdx.x) * 1024 + threadIdx.x;
  float held[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) held[i] = first + 256 * i < n ? x[first + 256 * i] : 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + 256 * i < n) out[first + 256 * i] = held[i] * 2.0f + 1.0f;
}
