// SPDX-License-Identifier: Apache-2.0
// The second step begins while the first still runs, and waits before it reads.
extern "C" __global__ void first(const float* x, float* tmp, int n) {
  asm volatile("griddepcontrol.launch_dependents;");
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tmp[i] = fmaxf(x[i], 0.0f);
}
extern "C" __global__ void second(const float* tmp, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile("griddepcontrol.wait;" : : : "memory");
  if (i < n) out[i] = tmp[i] * 2.0f + 1.0f;
}
