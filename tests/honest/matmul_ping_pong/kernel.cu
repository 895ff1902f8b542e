// SPDX-License-Identifier: Apache-2.0
// out: permute, mm, relu
//
// out(m, n) = finish(sum over k of x(m, k) * y(n, k)). As many CTAs as the GPU holds compute tiles of
// kTileM x kTileN, one after the other. A producer loads tiles of both operands, kTileK deep, while
// consumers multiply. Elements beyond an edge read as zero; results beyond an edge are not written.
// The plan sets USE_TMA: 1 if tensor maps can describe both operands. It sets VECTOR_*: smaller if a
// size is not a multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/gemm_wgmma.cuh>
#include <cutegen/math.cuh>

using namespace cute;

constexpr int kTileM = 64;
constexpr int kTileN = 64;
constexpr int kTileK = 64;
constexpr int kStages = 3;
constexpr int kCluster = 1;  // CTAs that share tiles of y
constexpr int kVector = VECTOR_OUT;

// What the plan's tensor maps load: boxes with lines of 128 bytes.
extern "C" __device__ const unsigned cg_map_a[15] = {1, 3, 64, 64, 1, 0, 0, 0, 1, 2, 0, 0, 16, 3, 4};
extern "C" __device__ const unsigned cg_map_b[15] = {1, 3, 64, 64, 1, 0, 0, 0, 1, 2, 0, 0, 16, 3, 4};

using Gemm = cutegen::WgmmaGemm<bfloat16_t, bfloat16_t, bfloat16_t, kTileM, kTileN, kStages,
                                VECTOR_A, VECTOR_B, true, true, USE_TMA, kCluster, 1, true>;

// Computes what follows the product for one element, in float32.
__device__ __forceinline__ void compute(float product_value, float& result_out) {
  const float relu = cutegen::relu(product_value);
  result_out = relu;
}

extern "C" __global__ void __launch_bounds__(Gemm::kThreads, Gemm::kResident)
matmul(const __grid_constant__ TmaDescriptor map_a, const __grid_constant__ TmaDescriptor map_b,
       bfloat16_t const* __restrict__ x, bfloat16_t const* __restrict__ y, bfloat16_t* __restrict__ out,
       int m_size, int n_size, int k_size, int batches, int64_t a_row, int64_t b_row, int64_t out_m0) {
  extern __shared__ __align__(1024) uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles_m = ceil_div(m_size, kTileM), tiles_n = ceil_div(n_size, kTileN);
  const int tiles = ceil_div(tiles_m, kCluster) * kCluster * tiles_n;
  Gemm gemm;
  gemm.begin(storage);
  if (gemm.produces()) {
    gemm.start_loading();
    for (int id = blockIdx.x; id < tiles * batches; id += gridDim.x) {
      const int at = id;
      const int batch = at / tiles;
      const auto tile = cutegen::cluster_tile<kCluster>(at % tiles, tiles_m, tiles_n);
      const int tiles_k = ceil_div(k_size, kTileK);
      const int first = 0;
      int last = tiles_k;
#if USE_TMA
      gemm.load(map_a, map_b, 0, 0, tile, first, last, storage);
#else
      Tensor rows = make_tensor(make_gmem_ptr(x),
                                make_layout(make_shape(m_size, k_size), make_stride(a_row, Int<1>{})));
      Tensor columns = make_tensor(make_gmem_ptr(y),
                                   make_layout(make_shape(n_size, k_size), make_stride(b_row, Int<1>{})));
      gemm.load(rows, columns, tile, first, last, storage);
#endif
    }
  } else {
    gemm.start_multiplying();
    for (int id = blockIdx.x; id < tiles * batches; id += gridDim.x) {
      const int at = id;
      const int batch = at / tiles;
      const auto tile = cutegen::cluster_tile<kCluster>(at % tiles, tiles_m, tiles_n);
      const int tiles_k = ceil_div(k_size, kTileK);
      const int first = 0;
      int last = tiles_k;
      if (gemm.skips(first, last)) continue;
      gemm.multiply(first, last, storage);
      Tensor g_out = make_tensor(make_gmem_ptr(out),
          make_layout(make_shape(Int<kVector>{}, m_size, n_size, batches),
                      make_stride(Int<1>{}, out_m0, Int<1>{}, Int<0>{})));
      gemm.each<kVector>(tile, [&](float const (&product)[kVector], int m, int n) {
        if (m >= m_size || n >= n_size) return;
        float r_out[kVector];
        CUTE_UNROLL
        for (int v = 0; v < kVector; ++v)
          compute(product[v], r_out[v]);
        cutegen::store(r_out, g_out(_, m, n, batch));
      });
    }
  }
  gemm.end();
}
