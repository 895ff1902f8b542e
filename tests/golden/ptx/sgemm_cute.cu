// C = A B, row-major floats, sizes multiples of the tile: 128 x 128 x 8, 256 threads, 8 x 8 a thread.
#include <cute/tensor.hpp>
using namespace cute;

extern "C" __global__ void __launch_bounds__(256)
    sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
  Tensor A = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, Int<1>{}));
  Tensor B = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(Int<1>{}, n));
  Tensor C = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, Int<1>{}));
  auto tile_m = Int<128>{};
  auto tile_n = Int<128>{};
  auto tile_k = Int<8>{};
  Tensor gA = local_tile(A, make_shape(tile_m, tile_k), make_coord(blockIdx.y, _));
  Tensor gB = local_tile(B, make_shape(tile_n, tile_k), make_coord(blockIdx.x, _));
  Tensor gC = local_tile(C, make_shape(tile_m, tile_n), make_coord(blockIdx.y, blockIdx.x));
  auto layout_a = make_layout(make_shape(tile_m, tile_k), make_stride(Int<1>{}, Int<132>{}));
  auto layout_b = make_layout(make_shape(tile_n, tile_k));
  __shared__ float smem_a[cosize_v<decltype(layout_a)>];
  __shared__ float smem_b[cosize_v<decltype(layout_b)>];
  Tensor sA = make_tensor(make_smem_ptr(smem_a), layout_a);
  Tensor sB = make_tensor(make_smem_ptr(smem_b), layout_b);

  auto threads_a = make_layout(make_shape(Int<32>{}, Int<8>{}), make_stride(Int<8>{}, Int<1>{}));
  auto threads_b = make_layout(make_shape(Int<32>{}, Int<8>{}));
  auto threads_c = make_layout(make_shape(Int<16>{}, Int<16>{}), make_stride(Int<16>{}, Int<1>{}));
  int thread = threadIdx.x;
  Tensor tAgA = local_partition(gA, threads_a, thread);  // (4, 1, tiles)
  Tensor tAsA = local_partition(sA, threads_a, thread);
  Tensor tBgB = local_partition(gB, threads_b, thread);
  Tensor tBsB = local_partition(sB, threads_b, thread);
  Tensor tCsA = local_partition(sA, threads_c, thread, Step<_1, X>{});
  Tensor tCsB = local_partition(sB, threads_c, thread, Step<X, _1>{});
  Tensor tCgC = local_partition(gC, threads_c, thread, Step<_1, _1>{});
  Tensor tCrC = make_tensor_like(tCgC);
  clear(tCrC);
  for (int tile = 0; tile < size<2>(gA); ++tile) {
    copy(tAgA(_, _, tile), tAsA);
    copy(tBgB(_, _, tile), tBsB);
    __syncthreads();
    gemm(tCsA, tCsB, tCrC);
    __syncthreads();
  }
  copy(tCrC, tCgC);
}
