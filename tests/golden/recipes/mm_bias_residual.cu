// SPDX-License-Identifier: Apache-2.0
// out: t, addmm, relu, mul, add
//
// out(m, n) = finish(sum over k of x(m, k) * fc_weight(n, k)). Each CTA computes a tile of kTileM x kTileN.
// Tiles of both operands pass through shared memory, kTileK deep. Elements beyond an edge read as
// zero; results beyond an edge are not written. Operands keep their own strides, so a transposed
// operand only needs another load path.
// The plan sets VECTOR_*: 1 if a size is not a multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/gemm_simt.cuh>
#include <cutegen/math.cuh>

using namespace cute;

constexpr int kTileM = 64;
constexpr int kTileN = 64;
constexpr int kTileK = 16;
constexpr int kThreads = 256;
constexpr int kStages = 3;
// CTAs that an SM should hold: 128 registers for each thread, 256 if a thread has over 64 results.
constexpr int kResident = (kTileM * kTileN > 64 * kThreads ? 256 : 512) / kThreads;
constexpr int kVector = VECTOR_OUT;

using Gemm = cutegen::SimtGemm<float, float, kTileM, kTileN, kTileK, kThreads, kStages,
                      VECTOR_A, VECTOR_B, true, true>;

// Computes what follows the product for one element, in float32.
__device__ __forceinline__ void compute(float product_value, float fc_bias_value, float r_value, float& result_out) {
  const float addmm = product_value + fc_bias_value;
  const float relu = cutegen::relu(addmm);
  const float mul = r_value * 0.5f;
  const float add = relu + mul;
  result_out = add;
}

extern "C" __global__ void __launch_bounds__(kThreads, kResident)
matmul(float const* __restrict__ x, float const* __restrict__ fc_weight, float const* __restrict__ fc_bias, float const* __restrict__ r, float* __restrict__ out,
       int m_size, int n_size, int k_size, int batches, int64_t a_row, int64_t b_row, int64_t r_m0, int64_t out_m0) {
  extern __shared__ uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles_m = ceil_div(m_size, kTileM), tiles_n = ceil_div(n_size, kTileN);
  const auto tile = cutegen::tile_index(blockIdx.x, tiles_m, tiles_n);
  const int batch = blockIdx.z;
  const int tiles_k = ceil_div(k_size, kTileK);
  const int first = 0;
  int last = tiles_k;
  Tensor rows = make_tensor(make_gmem_ptr(x),
                            make_layout(make_shape(m_size, k_size), make_stride(a_row, Int<1>{})));
  Tensor columns = make_tensor(make_gmem_ptr(fc_weight),
                               make_layout(make_shape(n_size, k_size), make_stride(b_row, Int<1>{})));
  Gemm gemm;
  gemm.run(rows, columns, tile, first, last, storage);

  Tensor g_fc_bias = make_tensor(make_gmem_ptr(fc_bias),
      make_layout(make_shape(Int<kVector>{}, m_size, n_size, batches),
                  make_stride(Int<1>{}, Int<0>{}, Int<1>{}, Int<0>{})));
  Tensor g_r = make_tensor(make_gmem_ptr(r),
      make_layout(make_shape(Int<kVector>{}, m_size, n_size, batches),
                  make_stride(Int<1>{}, r_m0, Int<1>{}, Int<0>{})));
  Tensor g_out = make_tensor(make_gmem_ptr(out),
      make_layout(make_shape(Int<kVector>{}, m_size, n_size, batches),
                  make_stride(Int<1>{}, out_m0, Int<1>{}, Int<0>{})));
  gemm.each<kVector>(tile, [&](float const (&product)[kVector], int m, int n) {
    if (m >= m_size || n >= n_size) return;
    float r_fc_bias[kVector];
    cutegen::load(g_fc_bias(_, m, n, batch), r_fc_bias);
    float r_r[kVector];
    cutegen::load(g_r(_, m, n, batch), r_r);
    float r_out[kVector];
    CUTE_UNROLL
    for (int v = 0; v < kVector; ++v)
      compute(product[v], r_fc_bias[v], r_r[v], r_out[v]);
    cutegen::store(r_out, g_out(_, m, n, batch));
  });
}
