extern "C" __global__ void histogram(const int* x, unsigned* bins, float* total, int* extremes, unsigned long long* wide, int n) {
  __shared__ unsigned local[32];
  if (threadIdx.x < 32) local[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&local[x[i] & 31], 1u); atomicAdd(total, (float)(x[i] & 3)); atomicMin(&extremes[0], x[i]); atomicMax(&extremes[1], x[i]);
    atomicAdd(wide, (unsigned long long)x[i]); atomicOr(&bins[32], 1u << (x[i] & 31)); atomicInc(&bins[33], 9u); atomicCAS(&bins[34], 0u, 77u); atomicExch(&bins[35], 5u);
  }
  __syncthreads();
  if (threadIdx.x < 32) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
extern "C" __global__ void warps(const int* x, int* out) {
  int v = x[threadIdx.x];
  int lane = threadIdx.x & 31;
  out[threadIdx.x] = __shfl_sync(~0u, v, (lane * 5) & 31) + __shfl_up_sync(~0u, v, 3) + __shfl_down_sync(~0u, v, 2, 8) + __shfl_xor_sync(~0u, v, 7);
  out[128 + threadIdx.x] = __ballot_sync(~0u, v & 1) + __any_sync(~0u, v > 90) * 2 + __all_sync(~0u, v >= 0);
  out[256 + threadIdx.x] = __reduce_add_sync(~0u, v) + __reduce_max_sync(~0u, v) - __reduce_min_sync(~0u, v);
  unsigned same = __match_any_sync(~0u, v & 3);
  out[384 + threadIdx.x] = (int)same + (int)__activemask();
}
