// SPDX-License-Identifier: Apache-2.0
__device__ unsigned high(float v) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return bits;
}
__device__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern "C" __global__ void go(const float* x, const float* y, float* out, int m, int k, int n) {
  const int row = blockIdx.x * 16, col = blockIdx.y * 8, g = threadIdx.x / 4, t = threadIdx.x % 4;
  float sum[4] = {0, 0, 0, 0};
  for (int from = 0; from < k; from += 8) {
    unsigned ah[4], al[4], bh[2], bl[2];
    for (int e = 0; e < 4; ++e) {
      const int r = row + g + e % 2 * 8, c = from + t + e / 2 * 4;
      const float v = r < m && c < k ? x[r * k + c] : 0.0f;
      ah[e] = high(v), al[e] = high(v - __uint_as_float(ah[e]));
    }
    for (int e = 0; e < 2; ++e) {
      const int r = from + t + e * 4, c = col + g;
      const float v = r < k && c < n ? y[r * n + c] : 0.0f;
      bh[e] = high(v), bl[e] = high(v - __uint_as_float(bh[e]));
    }
    float tile[4] = {0, 0, 0, 0};
    mma(tile, al, bh), mma(tile, ah, bl), mma(tile, ah, bh);
    for (int e = 0; e < 4; ++e) sum[e] += tile[e];
  }
  for (int e = 0; e < 4; ++e) {
    const int r = row + g + e / 2 * 8, c = col + t * 2 + e % 2;
    if (r < m && c < n) out[r * n + c] = sum[e];
  }
}
