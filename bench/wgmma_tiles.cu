// SPDX-License-Identifier: Apache-2.0
// One kernel of cutegen/gemm_wgmma_fp32.cuh as a library. bench/wgmma_products.py compiles it once
// for each layout and tile. -DA_DEPTH and -DB_DEPTH say whether an operand is contiguous along k.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cute/tensor.hpp>
#include <cutegen/gemm_wgmma_fp32.cuh>

using namespace cute;

constexpr bool kDepthA = A_DEPTH, kDepthB = B_DEPTH;
using Gemm =
    cutegen::WgmmaFp32Gemm<float, float, TILE_M, TILE_N, 32, STAGES, 4, 4, kDepthA, kDepthB>;
constexpr int kVector = Gemm::kVector;

template <bool Depth>
__device__ auto operand(float const* from, int rows, int depth) {
  if constexpr (Depth)
    return make_tensor(make_gmem_ptr(from), make_layout(make_shape(rows, depth),
                                                        make_stride(int64_t(depth), _1{})));
  else
    return make_tensor(make_gmem_ptr(from), make_layout(make_shape(rows, depth),
                                                        make_stride(_1{}, int64_t(rows))));
}

__global__ void __launch_bounds__(Gemm::kThreads, 1)
tile_product(float const* a, float const* b, float* out, int m_size, int n_size, int k_size) {
  extern __shared__ __align__(1024) uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles = ceil_div(k_size, 32);
  const auto tile =
      cutegen::tile_index(blockIdx.x, ceil_div(m_size, TILE_M), ceil_div(n_size, TILE_N));
  Tensor rows = operand<kDepthA>(a, m_size, k_size);
  Tensor columns = operand<kDepthB>(b, n_size, k_size);
  Tensor results = make_tensor(make_gmem_ptr(out),
                               make_layout(make_shape(Int<kVector>{}, m_size, n_size),
                                           make_stride(_1{}, int64_t(n_size), _1{})));
  Gemm gemm;
  if (!gemm.run(rows, columns, tile, 0, tiles, storage)) return;
  gemm.repair(rows, columns, tile, 0, tiles);
  gemm.each<kVector>(tile, [&](float const (&c)[kVector], int m, int n) {
    if (m < m_size && n < n_size) cutegen::store(c, results(_, m, n));
  });
}

// Sizes are multiples of 4, n of 2.
extern "C" int launch(float const* a, float const* b, float* out, int m, int n, int k,
                      cudaStream_t stream) {
  constexpr int kBytes = sizeof(typename Gemm::Storage);
  cudaFuncSetAttribute(tile_product, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const int tiles = ceil_div(m, TILE_M) * ceil_div(n, TILE_N);
  tile_product<<<tiles, Gemm::kThreads, kBytes, stream>>>(a, b, out, m, n, k);
  return cudaGetLastError();
}
