// SPDX-License-Identifier: Apache-2.0
// One bfloat16 kernel of cutegen/gemm_wgmma.cuh as a library. bench/wgmma_halves.py compiles it
// once for each layout and tile. -DPERSISTENT limits the CTAs to those that run at once. -DA_DEPTH
// and -DB_DEPTH say whether an operand is contiguous along k, -DUSE_TMA whether tensor maps load.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cute/tensor.hpp>
#include <cutegen/gemm_wgmma.cuh>

using namespace cute;

constexpr bool kDepthA = A_DEPTH, kDepthB = B_DEPTH;
using Gemm = cutegen::WgmmaGemm<bfloat16_t, bfloat16_t, bfloat16_t, TILE_M, TILE_N, STAGES, 8, 8,
                                kDepthA, kDepthB, USE_TMA, CLUSTER>;

template <bool Depth>
__device__ auto operand(bfloat16_t const* from, int rows, int depth) {
  if constexpr (Depth)
    return make_tensor(make_gmem_ptr(from), make_layout(make_shape(rows, depth),
                                                        make_stride(int64_t(depth), _1{})));
  else
    return make_tensor(make_gmem_ptr(from), make_layout(make_shape(rows, depth),
                                                        make_stride(_1{}, int64_t(rows))));
}

__global__ void __launch_bounds__(Gemm::kThreads, Gemm::kResident)
tile_product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             bfloat16_t const* a, bfloat16_t const* b, bfloat16_t* out, int m_size, int n_size,
             int k_size) {
  extern __shared__ __align__(1024) uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles = ceil_div(k_size, int{Gemm::kTileK});
  const int tiles_m = ceil_div(m_size, TILE_M), tiles_n = ceil_div(n_size, TILE_N);
  Tensor results = make_tensor(make_gmem_ptr(out),
                               make_layout(make_shape(_8{}, m_size, n_size),
                                           make_stride(_1{}, int64_t(n_size), _1{})));
  Gemm gemm;
  gemm.begin(storage);
  const int all = ceil_div(tiles_m, CLUSTER) * CLUSTER * tiles_n;
  if (gemm.produces()) {
    gemm.start_loading();
    for (int id = blockIdx.x; id < all; id += gridDim.x) {
      const auto tile = cutegen::cluster_tile<CLUSTER>(id, tiles_m, tiles_n);
#if USE_TMA
      gemm.load(map_a, map_b, 0, 0, tile, 0, tiles, storage);
#else
      gemm.load(operand<kDepthA>(a, m_size, k_size), operand<kDepthB>(b, n_size, k_size), tile, 0,
                tiles, storage);
#endif
    }
  } else {
    gemm.start_multiplying();
    for (int id = blockIdx.x; id < all; id += gridDim.x) {
      gemm.multiply(0, tiles, storage);
      gemm.each<8>(cutegen::cluster_tile<CLUSTER>(id, tiles_m, tiles_n),
                   [&](float const (&c)[8], int m, int n) {
        if (m < m_size && n < n_size) cutegen::store(c, results(_, m, n));
      });
    }
  }
  gemm.end();
}

namespace {

// Describes an operand: lines of 128 bytes, `box` rows of them.
bool describe(CUtensorMap* map, void const* from, bool depth, int rows, int k, int box) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found))
    return false;
  const cuuint64_t along = depth ? k : rows, across = depth ? rows : k;
  const cuuint64_t sizes[3] = {along, across, 1}, pitches[2] = {along * 2, 32};
  const cuuint32_t boxes[3] = {64, cuuint32_t(depth ? box : 64), 1}, steps[3] = {1, 1, 1};
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
             map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, const_cast<void*>(from), sizes, pitches, boxes,
             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

// Sizes are multiples of 8.
extern "C" int launch(bfloat16_t const* a, bfloat16_t const* b, bfloat16_t* out, int m, int n,
                      int k, cudaStream_t stream) {
  constexpr int kBytes = sizeof(typename Gemm::Storage);
  CUtensorMap map_a, map_b;
  if (!describe(&map_a, a, kDepthA, m, k, TILE_M) ||
      !describe(&map_b, b, kDepthB, n, k, TILE_N / CLUSTER))
    return -1;
  cudaFuncSetAttribute(tile_product, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const int tiles = ceil_div(ceil_div(m, TILE_M), CLUSTER) * CLUSTER * ceil_div(n, TILE_N);
  cudaLaunchConfig_t config = {};
  config.gridDim = PERSISTENT ? min(tiles, 132 * Gemm::kResident) : tiles;
  config.blockDim = Gemm::kThreads;
  config.dynamicSmemBytes = kBytes, config.stream = stream;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = CLUSTER, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster, config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, tile_product, map_a, map_b, a, b, out, m, n, k);
}
