// SPDX-License-Identifier: Apache-2.0
extern "C" __device__ const int cg_weigh = 128 * 4;

extern "C" __global__ void square(const float* w, float* squares, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) squares[i] = w[i] * w[i];
}

extern "C" __global__ void weigh(const float* x, const float* squares, const float* column, float* y, float* parts,
                                 int n) {
  extern __shared__ float shared[];
  const long long row = (long long)blockIdx.y * n;
  float sum = 0.0f;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
    const float value = x[row + i] * squares[i] + column[i];
    y[row + i] = value, sum += value;
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(parts + blockIdx.y, shared[0]);
}

extern "C" __global__ void finish(const float* parts, const float* row, const long long* mask, float* sums,
                                  int rows) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows) sums[i] = mask[i] == 5 ? parts[i] * SCALE + row[i] : 0.0f;
}
