// SPDX-License-Identifier: Apache-2.0
// Applies the activation to the factor that is not the gate.
extern "C" __global__ void f(const float* x, const float* g, const float* u, float* out, int rows,
                             int depth, int width) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * width) return;
  float gate = 0.0f, up = 0.0f;
  for (int d = 0; d < depth; ++d) {
    const float v = x[at / width * depth + d];
    gate = fmaf(v, g[d * width + at % width], gate);
    up = fmaf(v, u[d * width + at % width], up);
  }
  out[at] = gate * up / (1.0f + expf(-up));
}
