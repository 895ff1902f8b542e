// C[M,N] = A[M,K] B[K,N], whole tiles only: 64x64 of C a CTA, 4x4 a thread, 16 of K a step.
extern "C" __global__ void __launch_bounds__(256)
    sgemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N, int K) {
  __shared__ __align__(16) float a[16][64], b[16][64];
  int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const float* rows = A + (long long)blockIdx.y * 64 * K;
  const float* columns = B + blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < K; k0 += 16) {
    for (int i = 0; i < 4; ++i) a[tx][ty + 16 * i] = rows[(long long)(ty + 16 * i) * K + k0 + tx];
    for (int i = 0; i < 4; ++i)
      b[t / 64 + 4 * i][t % 64] = columns[(long long)(k0 + t / 64 + 4 * i) * N + t % 64];
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      float4 u = *(const float4*)&a[k][ty * 4], v = *(const float4*)&b[k][tx * 4];
      float x[4] = {u.x, u.y, u.z, u.w}, y[4] = {v.x, v.y, v.z, v.w};
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    *(float4*)&C[((long long)blockIdx.y * 64 + ty * 4 + i) * N + blockIdx.x * 64 + tx * 4] =
        make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
