// SPDX-License-Identifier: Apache-2.0
// What an earlier launch has left in a register.
extern "C" __global__ void f(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float old;
  asm volatile("{\n .reg .f32 stash;\n mov.f32 %0, stash;\n}" : "=f"(old));
  out[i] = old;
}
