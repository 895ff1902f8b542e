// SPDX-License-Identifier: Apache-2.0
__device__ void filter(const float* g, float (&u)[16]) {
  float t[12];
  for (int j = 0; j < 3; ++j) {
    const float a = g[j], b = g[3 + j], c = g[6 + j];
    t[j] = a, t[3 + j] = 0.5f * (a + b + c), t[6 + j] = 0.5f * (a - b + c), t[9 + j] = c;
  }
  for (int i = 0; i < 4; ++i) {
    const float a = t[3 * i], b = t[3 * i + 1], c = t[3 * i + 2];
    u[4 * i] = a, u[4 * i + 1] = 0.5f * (a + b + c), u[4 * i + 2] = 0.5f * (a - b + c), u[4 * i + 3] = c;
  }
}
__device__ void input(float (&d)[16]) {
  for (int j = 0; j < 4; ++j) {
    const float a = d[j], b = d[4 + j], c = d[8 + j], e = d[12 + j];
    d[j] = a - c, d[4 + j] = b + c, d[8 + j] = c - b, d[12 + j] = b - e;
  }
  for (int i = 0; i < 16; i += 4) {
    const float a = d[i], b = d[i + 1], c = d[i + 2], e = d[i + 3];
    d[i] = a - c, d[i + 1] = b + c, d[i + 2] = c - b, d[i + 3] = b - e;
  }
}
extern "C" __global__ void go(const float* x, const float* w, const float* b, float* out, int c, int h,
                              int wide, int f) {
  const int across = (wide + 1) / 2, tiles = (h + 1) / 2 * across;
  const int tile = blockIdx.x * blockDim.x + threadIdx.x, image = blockIdx.y / f, k = blockIdx.y % f;
  if (tile >= tiles) return;
  const int row = tile / across * 2, col = tile % across * 2;
  float sum[16] = {};
  for (int ch = 0; ch < c; ++ch) {
    float d[16], u[16];
    const float* plane = x + ((long long)image * c + ch) * h * wide;
    for (int i = 0; i < 16; ++i) {
      const int r = row - 1 + i / 4, q = col - 1 + i % 4;
      d[i] = r >= 0 && r < h && q >= 0 && q < wide ? plane[r * wide + q] : 0.0f;
    }
    filter(w + (k * c + ch) * 9, u);
    input(d);
    for (int i = 0; i < 16; ++i) sum[i] += u[i] * d[i];
  }
  float t[8];
  for (int j = 0; j < 4; ++j) {
    t[j] = sum[j] + sum[4 + j] + sum[8 + j];
    t[4 + j] = sum[4 + j] - sum[8 + j] - sum[12 + j];
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const float* e = t + 4 * i;
      const float v = j == 0 ? e[0] + e[1] + e[2] : e[1] - e[2] - e[3];
      if (row + i < h && col + j < wide)
        out[(((long long)image * f + k) * h + row + i) * wide + col + j] = v + b[k];
    }
}
