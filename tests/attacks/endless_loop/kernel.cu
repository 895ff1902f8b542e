// SPDX-License-Identifier: Apache-2.0
// Runs through the whole period of a generator of random numbers: four thousand million slow steps.
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = x[i];
  unsigned state = i;
  do {
    state = state * 1664525u + 1013904223u;
    atomicAdd(out + i, float(state & 1));
    atomicAdd(out + i, -float(state & 1));
  } while (state != unsigned(i));
}
