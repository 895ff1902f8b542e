// SPDX-License-Identifier: Apache-2.0
// The second step may begin before the first has ended, and does not wait for it.
extern "C" __global__ void first(const float* x, float* tmp, int n) {
  asm volatile("griddepcontrol.launch_dependents;");
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tmp[i] = fmaxf(x[i], 0.0f);
}
extern "C" __global__ void second(const float* tmp, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tmp[i] + 1.0f;
}
