// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void go(const float* x, const float* k, const float* b, float* out, int batch, int in,
                              int channels, int h, int w, int kh, int kw) {
  const int oh = h - kh + 1, ow = w - kw + 1, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch * channels * oh * ow) return;
  const int q = i % ow, p = i / ow % oh, c = i / (ow * oh) % channels, image = i / (ow * oh * channels);
  float sum = b[c];
  for (int y = 0; y < kh; ++y)
    for (int z = 0; z < kw; ++z)
      sum += x[((image * in + c) * h + p + y) * w + q + z] * k[(c * kh + y) * kw + z];
  out[i] = sum;
}
