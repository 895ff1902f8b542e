// SPDX-License-Identifier: Apache-2.0
// fused_add_rmsnorm as in production: 16-byte vectors, a reduction by shuffles with one shared word
// per warp, and the sums of a row in shared memory as floats.
#include <cuda_fp16.h>

namespace {

constexpr int kHalves = 8;  // in 16 bytes

__device__ __forceinline__ float2 floats(unsigned pair) {
  return __half22float2(reinterpret_cast<const __half2&>(pair));
}
__device__ __forceinline__ unsigned halves(float2 pair) {
  const __half2 r = __float22half2_rn(pair);
  return reinterpret_cast<const unsigned&>(r);
}

// Adds two pairs, and adds the squares of the results to `sum`.
__device__ __forceinline__ float2 add(unsigned a, unsigned b, float& sum) {
  const float2 p = floats(a), q = floats(b);
  const float2 total = make_float2(p.x + q.x, p.y + q.y);
  sum += total.x * total.x + total.y * total.y;
  return total;
}

// The sum over the block, in every thread.
__device__ __forceinline__ float block_sum(float sum, float* words) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) words[warp] = sum;
  __syncthreads();
  sum = lane < warps ? words[lane] : 0.0f;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return sum;
}

__device__ __forceinline__ unsigned scaled(float2 total, float scale, unsigned weight) {
  const float2 w = floats(weight);
  return halves(make_float2(total.x * scale * w.x, total.y * scale * w.y));
}

}  // namespace

extern "C" __global__ void fused_add_rmsnorm(__half* __restrict__ x, __half* __restrict__ residual,
                                             const __half* __restrict__ weight, int hidden,
                                             float eps) {
  extern __shared__ float4 totals[];  // of the row; two per vector
  __shared__ float words[32];
  uint4* own = reinterpret_cast<uint4*>(x + static_cast<long long>(blockIdx.x) * hidden);
  uint4* rest = reinterpret_cast<uint4*>(residual + static_cast<long long>(blockIdx.x) * hidden);
  const int vectors = hidden / kHalves;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const uint4 a = own[i], b = rest[i];
    const float2 t0 = add(a.x, b.x, sum), t1 = add(a.y, b.y, sum);
    const float2 t2 = add(a.z, b.z, sum), t3 = add(a.w, b.w, sum);
    rest[i] = make_uint4(halves(t0), halves(t1), halves(t2), halves(t3));
    totals[2 * i] = make_float4(t0.x, t0.y, t1.x, t1.y);
    totals[2 * i + 1] = make_float4(t2.x, t2.y, t3.x, t3.y);
  }
  const float scale = rsqrtf(block_sum(sum, words) / hidden + eps);
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 low = totals[2 * i], high = totals[2 * i + 1];  // this thread wrote them
    const uint4 w = reinterpret_cast<const uint4*>(weight)[i];
    own[i] = make_uint4(scaled(make_float2(low.x, low.y), scale, w.x),
                        scaled(make_float2(low.z, low.w), scale, w.y),
                        scaled(make_float2(high.x, high.y), scale, w.z),
                        scaled(make_float2(high.z, high.w), scale, w.w));
  }
}
