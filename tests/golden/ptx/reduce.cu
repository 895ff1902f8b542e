extern "C" __global__ void row_sum(const float4* x, float* y, int cols4) {
  __shared__ float part[32];
  float s = 0;
  for (int i = threadIdx.x; i < cols4; i += blockDim.x) { float4 v = x[(size_t)blockIdx.x * cols4 + i]; s += (v.x + v.y) + (v.z + v.w); }
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  int warps = (blockDim.x + 31) / 32;
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < warps ? part[threadIdx.x] : 0.f;
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
  }
}
extern "C" __global__ void col_max(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  float m = x[c];
  for (int r = 1; r < rows; ++r) m = fmaxf(m, x[(size_t)r * cols + c]);
  y[c] = m;
}
extern "C" __global__ void argmax_rows(const float* x, long long* y, int cols) {
  extern __shared__ char raw[];
  float* v = (float*)raw; int* at = (int*)(raw + blockDim.x * 4);
  float best = __int_as_float(0xff800000); int where = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) { float a = x[(long long)blockIdx.x * cols + i]; if (a > best) { best = a; where = i; } }
  v[threadIdx.x] = best; at[threadIdx.x] = where;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) {
      float b = v[threadIdx.x + s]; int w = at[threadIdx.x + s];
      if (b > v[threadIdx.x] || (b == v[threadIdx.x] && w < at[threadIdx.x])) { v[threadIdx.x] = b; at[threadIdx.x] = w; }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = at[0];
}
