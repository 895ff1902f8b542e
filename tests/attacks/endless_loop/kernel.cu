// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void f(const float* x, float* out, int n) {
  volatile float* flag = out;
  while (flag[0] != 12345.0f) {
  }
  out[0] = x[0];
  out[n - 1] = x[n - 1];
}
