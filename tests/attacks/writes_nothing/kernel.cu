// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  if (n < 0) out[0] = x[0];
}
