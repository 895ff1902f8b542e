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
constexpr int kStages = 4;
constexpr int kCluster = 1;  // CTAs that share tiles of y
constexpr int kVector = VECTOR_OUT;

// What the plan's tensor maps load: boxes with lines of 128 bytes.
extern "C" __device__ const unsigned cg_map_a[15] = {1, 3, 64, 64, 1, 0, 0, 0, 1, 2, 0, 0, 16, 3, 4};
extern "C" __device__ const unsigned cg_map_b[15] = {1, 3, 64, 64, 1, 0, 0, 0, 1, 2, 0, 0, 16, 3, 4};

using Gemm = cutegen::WgmmaGemm<bfloat16_t, bfloat16_t, bfloat16_t, kTileM, kTileN, kStages,
                                VECTOR_A, VECTOR_B, true, true, USE_TMA, kCluster>;

// Computes what follows the product for one element, in float32.
__device__ __forceinline__ void compute(float product_value, float& result_out) {
  const float relu = cutegen::relu(product_value);
  result_out = relu;
}

extern "C" __global__ void __launch_bounds__(Gemm::kThreads, Gemm::kResident)
matmul(const __grid_constant__ TmaDescriptor map_a, const __grid_constant__ TmaDescriptor map_b,
       bfloat16_t const* __restrict__ x, bfloat16_t const* __restrict__ y, bfloat16_t* __restrict__ out, float* __restrict__ partial,
       int m_size, int n_size, int k_size, int batches, int whole, int pieces, int64_t a_row, int64_t b_row, int64_t out_m0) {
  extern __shared__ __align__(1024) uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles_m = ceil_div(m_size, kTileM), tiles_n = ceil_div(n_size, kTileN);
  const int tiles = ceil_div(tiles_m, kCluster) * kCluster * tiles_n;
  Gemm gemm;
  gemm.begin(storage);
  asm volatile("griddepcontrol.launch_dependents;");  // the second kernel waits by itself
  // Items from `whole` on are parts of a tile: the last round has few tiles, so `pieces` CTAs
  // share the depth of each.
  const int items = whole + (tiles * batches - whole) * pieces;
  if (gemm.produces()) {
    gemm.start_loading();
    for (int id = blockIdx.x; id < items; id += gridDim.x) {
      const bool part = id >= whole;
      const int at = part ? whole + (id - whole) / pieces : id;
      const int batch = at / tiles;
      const auto tile = cutegen::cluster_tile<kCluster>(at % tiles, tiles_m, tiles_n);
      const int tiles_k = ceil_div(k_size, kTileK);
      const int share = part ? ceil_div(tiles_k, pieces) : tiles_k;
      const int first = part ? (id - whole) % pieces * share : 0;
      int last = cute::min(first + share, tiles_k);
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
    for (int id = blockIdx.x; id < items; id += gridDim.x) {
      const bool part = id >= whole;
      const int at = part ? whole + (id - whole) / pieces : id;
      const int batch = at / tiles;
      const auto tile = cutegen::cluster_tile<kCluster>(at % tiles, tiles_m, tiles_n);
      const int tiles_k = ceil_div(k_size, kTileK);
      const int share = part ? ceil_div(tiles_k, pieces) : tiles_k;
      const int first = part ? (id - whole) % pieces * share : 0;
      int last = cute::min(first + share, tiles_k);
      gemm.multiply(first, last, storage);
      if (part) {
        Tensor parts = make_tensor(
            make_gmem_ptr(partial + int64_t(id - whole) * (kTileM * kTileN)),
            make_layout(make_shape(Int<kVector>{}, Int<kTileM>{}, Int<kTileN>{}),
                        make_stride(Int<1>{}, Int<kTileN>{}, Int<1>{})));
        gemm.each<kVector>(tile, [&](float const (&product)[kVector], int m, int n) {
          cutegen::store(product, parts(_, m - tile.m * kTileM, n - tile.n * kTileN));
        });
        continue;
      }
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

// Adds the parts of each tile of the last round in a fixed order, then does the work after the product.
extern "C" __global__ void __launch_bounds__(256)
combine(float const* __restrict__ partial, bfloat16_t* __restrict__ out,
        int m_size, int n_size, int k_size, int batches, int whole, int pieces, int64_t out_m0_1) {
  constexpr int kVectors = kTileM * kTileN / kVector;  // of a tile
  const int index = blockIdx.x * 256 + threadIdx.x;
  const int tiles_m = ceil_div(m_size, kTileM), tiles_n = ceil_div(n_size, kTileN);
  const int at = whole + index / kVectors, within = index % kVectors;
  const auto tile = cutegen::cluster_tile<1>(at % (tiles_m * tiles_n), tiles_m, tiles_n);
  const int batch = at / (tiles_m * tiles_n);
  const int m = tile.m * kTileM + within / (kTileN / kVector);
  const int n = tile.n * kTileN + within % (kTileN / kVector) * kVector;
  if (m >= m_size || n >= n_size || batch >= batches) return;
  Tensor parts = make_tensor(make_gmem_ptr(partial + int64_t(at - whole) * pieces * kTileM * kTileN),
                             make_layout(make_shape(Int<kVector>{}, Int<kVectors>{}, pieces),
                                         make_stride(Int<1>{}, Int<kVector>{}, Int<kTileM * kTileN>{})));
  asm volatile("griddepcontrol.wait;" ::: "memory");  // until the product is complete
  float product[kVector] = {};
  for (int s = 0; s < pieces; s += 4) {
    float part[4][kVector] = {};
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
      if (s + i < pieces) cutegen::load(parts(_, within, s + i), part[i]);
    CUTE_UNROLL
    for (int i = 0; i < 4 * kVector; ++i) product[i % kVector] += part[i / kVector][i % kVector];
  }
  Tensor g_out = make_tensor(make_gmem_ptr(out),
      make_layout(make_shape(Int<kVector>{}, m_size, n_size, batches),
                  make_stride(Int<1>{}, out_m0_1, Int<1>{}, Int<0>{})));
  float r_out[kVector];
  CUTE_UNROLL
  for (int v = 0; v < kVector; ++v)
    compute(product[v], r_out[v]);
  cutegen::store(r_out, g_out(_, m, n, batch));
}
