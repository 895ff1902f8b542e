// C[M][N] f32 = A[M][K] f16 * B[N][K]^T f16: cp.async in three stages, ldmatrix, mma through TiledMMA.
#include <cute/tensor.hpp>
using namespace cute;
constexpr int kM = 128, kN = 128, kK = 32, kStages = 3;
extern "C" __device__ const int cg_smem = (kM + kN) * kK * kStages * 2;
extern "C" __global__ void __launch_bounds__(128)
gemm(half_t const* pa, half_t const* pb, float* pc, int m, int n, int k) {
  extern __shared__ __align__(128) char smem[];
  auto swizzled = composition(Swizzle<2, 3, 3>{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{});
  auto la = tile_to_shape(swizzled, Shape<Int<kM>, Int<kK>, Int<kStages>>{});
  auto lb = tile_to_shape(swizzled, Shape<Int<kN>, Int<kK>, Int<kStages>>{});
  Tensor ga = local_tile(make_tensor(make_gmem_ptr(pa), make_shape(m, k), make_stride(k, _1{})),
                         Shape<Int<kM>, Int<kK>>{}, make_coord(int(blockIdx.x), _));
  Tensor gb = local_tile(make_tensor(make_gmem_ptr(pb), make_shape(n, k), make_stride(k, _1{})),
                         Shape<Int<kN>, Int<kK>>{}, make_coord(int(blockIdx.y), _));
  Tensor gc = local_tile(make_tensor(make_gmem_ptr(pc), make_shape(m, n), make_stride(n, _1{})),
                         Shape<Int<kM>, Int<kN>>{}, make_coord(int(blockIdx.x), int(blockIdx.y)));
  Tensor sa = make_tensor(make_smem_ptr(reinterpret_cast<half_t*>(smem)), la);
  Tensor sb = make_tensor(make_smem_ptr(reinterpret_cast<half_t*>(smem) + cosize(la)), lb);
  auto copy = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{},
                              Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{},
                            Tile<_32, _32, _16>{});
  auto tc = copy.get_slice(threadIdx.x);
  Tensor fa = tc.partition_S(ga);
  Tensor ta = tc.partition_D(sa);
  Tensor fb = tc.partition_S(gb);
  Tensor tb = tc.partition_D(sb);
  auto tm = mma.get_slice(threadIdx.x);
  Tensor ra = tm.partition_fragment_A(sa(_, _, 0));
  Tensor rb = tm.partition_fragment_B(sb(_, _, 0));
  Tensor out = tm.partition_C(gc);
  Tensor acc = tm.make_fragment_C(out);
  clear(acc);
  auto ca = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
  auto cb = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
  auto sca = ca.get_slice(threadIdx.x);
  auto scb = cb.get_slice(threadIdx.x);
  Tensor la_from = sca.partition_S(sa);
  Tensor lb_from = scb.partition_S(sb);
  Tensor la_to = sca.retile_D(ra);
  Tensor lb_to = scb.retile_D(rb);
  int tiles = k / kK;
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < tiles) {
      cute::copy(copy, fa(_, _, _, s), ta(_, _, _, s));
      cute::copy(copy, fb(_, _, _, s), tb(_, _, _, s));
    }
    cp_async_fence();
  }
  for (int t = 0; t < tiles; ++t) {
    cp_async_wait<kStages - 2>();
    __syncthreads();
    int next = t + kStages - 1;
    if (next < tiles) {
      cute::copy(copy, fa(_, _, _, next), ta(_, _, _, next % kStages));
      cute::copy(copy, fb(_, _, _, next), tb(_, _, _, next % kStages));
    }
    cp_async_fence();
    cute::copy(ca, la_from(_, _, _, t % kStages), la_to);
    cute::copy(cb, lb_from(_, _, _, t % kStages), lb_to);
    cute::gemm(mma, ra, rb, acc);
  }
  cute::copy(acc, out);
}
