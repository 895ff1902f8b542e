// SPDX-License-Identifier: Apache-2.0
// A product by CuTe's TMA atoms, CUTLASS' asynchronous pipeline and wgmma. One warpgroup loads, two
// multiply; the result goes through shared memory by stmatrix and a tensor copy.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/pipeline/sm90_pipeline.hpp>

using namespace cute;

using T = bfloat16_t;
using TileM = _128;
using TileN = _128;
using TileK = _64;
constexpr int kStages = 4;

// A plan's tensor map, and its Spec, which cutegen reads from the module.
struct alignas(64) Map {
  char bytes[128];
};
struct Spec {
  unsigned version, rank, box[5];
  int mode[5];
  unsigned bits, swizzle_b, swizzle_m;
};

template <class Op, class Tile>
using Tma = decltype(make_tma_atom(
    Op{}, make_tensor(make_gmem_ptr(static_cast<T*>(nullptr)), Shape<int, int>{}, Stride<int64_t, _1>{}), Tile{},
    product_each(shape(Tile{})), _1{}));

template <class Copy>
CUTE_HOST_DEVICE constexpr Spec describe() {
  using Basis = remove_cvref_t<typename Copy::AuxParams::TmaGmemBasis>;
  using Swizzles = remove_cvref_t<typename Copy::AuxParams::TmaSwizzle>;
  Spec s{1, rank_v<Basis>, {1, 1, 1, 1, 1}, {}, sizeof_bits_v<T>, Swizzles::num_bits, Swizzles::num_base};
  for_each(make_seq<rank_v<Basis>>{}, [&](auto i) {
    s.box[i] = size<i>(Basis{});
    s.mode[i] = decltype(unwrap(get<i>(stride(Basis{}))))::mode();
  });
  return s;
}

// The descriptor is the atom's first member; the rest is static.
template <class Copy>
CUTE_DEVICE Copy const& over(Map const& map) {
  return reinterpret_cast<Copy const&>(map);
}

using Atom = GMMA::Layout_K_SW128_Atom<T>;
using LayoutA = decltype(tile_to_shape(Atom{}, Shape<TileM, TileK, Int<kStages>>{}));
using LayoutB = decltype(tile_to_shape(Atom{}, Shape<TileN, TileK, Int<kStages>>{}));
using LayoutC = decltype(tile_to_shape(Atom{}, Shape<TileM, TileN>{}));
using TmaA = Tma<SM90_TMA_LOAD, decltype(LayoutA{}(_, _, _0{}))>;
using TmaB = Tma<SM90_TMA_LOAD, decltype(LayoutB{}(_, _, _0{}))>;
using TmaC = Tma<SM90_TMA_STORE, LayoutC>;
using Mma = decltype(make_tiled_mma(SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>{},
                                    Layout<Shape<_2, _1, _1>>{}));
using Pipe = cutlass::PipelineTmaAsync<kStages>;

struct Shared {
  alignas(1024) T a[cosize_v<LayoutA>];
  alignas(1024) T b[cosize_v<LayoutB>];
  alignas(1024) T c[cosize_v<LayoutC>];
  Pipe::SharedStorage pipe;
};

extern "C" __device__ const Spec cg_tma_a = describe<TmaA>(), cg_tma_b = describe<TmaB>(), cg_tma_c = describe<TmaC>();
extern "C" __device__ const unsigned cg_smem = sizeof(Shared);

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, const __grid_constant__ Map map_c, int m,
     int n, int k) {
  extern __shared__ __align__(1024) char memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  auto const& load_a = over<TmaA>(map_a);
  auto const& load_b = over<TmaB>(map_b);
  auto const& store_c = over<TmaC>(map_c);
  Tensor global_a = local_tile(load_a.get_tma_tensor(make_shape(m, k)), Shape<TileM, TileK>{}, make_coord(blockIdx.x, _));
  Tensor global_b = local_tile(load_b.get_tma_tensor(make_shape(n, k)), Shape<TileN, TileK>{}, make_coord(blockIdx.y, _));
  Tensor global_c = local_tile(store_c.get_tma_tensor(make_shape(m, n)), Shape<TileM, TileN>{},
                               make_coord(blockIdx.x, blockIdx.y));
  Tensor shared_a = make_tensor(make_smem_ptr(s.a), LayoutA{});
  Tensor shared_b = make_tensor(make_smem_ptr(s.b), LayoutB{});
  Tensor shared_c = make_tensor(make_smem_ptr(s.c), LayoutC{});
  auto [from_a, to_a] = tma_partition(load_a, group_modes<0, 2>(shared_a), group_modes<0, 2>(global_a));
  auto [from_b, to_b] = tma_partition(load_b, group_modes<0, 2>(shared_b), group_modes<0, 2>(global_b));
  auto [to_c, from_c] = tma_partition(store_c, group_modes<0, 2>(shared_c), group_modes<0, 2>(global_c));

  const bool produces = threadIdx.x < 128;
  const int steps = size<2>(global_a);
  Pipe::Params params{};
  params.transaction_bytes = sizeof(T) * (TileM{} + TileN{}) * TileK{};
  params.is_leader = threadIdx.x == 0;
  params.num_consumers = 256;
  params.role = produces ? Pipe::ThreadCategory::Producer : Pipe::ThreadCategory::Consumer;
  Pipe pipe(s.pipe, params, Shape<_1, _1, _1>{});
  __syncthreads();

  if (produces) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x != 0) return;
    auto state = cutlass::make_producer_start_state<Pipe>();
    for (int i = 0; i < steps; ++i, ++state) {
      pipe.producer_acquire(state);
      copy(load_a.with(*pipe.producer_get_barrier(state)), from_a(_, i), to_a(_, state.index()));
      copy(load_b.with(*pipe.producer_get_barrier(state)), from_b(_, i), to_b(_, state.index()));
    }
    return;
  }
  cutlass::arch::warpgroup_reg_alloc<232>();
  Mma mma;
  auto slice = mma.get_slice(threadIdx.x - 128);
  mma.accumulate_ = GMMA::ScaleOut::Zero;
  Tensor fragment_a = slice.partition_fragment_A(shared_a), fragment_b = slice.partition_fragment_B(shared_b);
  Tensor sums = partition_fragment_C(mma, Shape<TileM, TileN>{});
  Pipe::PipelineState state;
  for (int i = 0; i < steps; ++i, ++state) {
    pipe.consumer_wait(state);
    warpgroup_fence_operand(sums);
    warpgroup_arrive();
    CUTE_UNROLL
    for (int j = 0; j < size<2>(fragment_a); ++j) {
      cute::gemm(mma, fragment_a(_, _, j, state.index()), fragment_b(_, _, j, state.index()), sums);
      mma.accumulate_ = GMMA::ScaleOut::One;
    }
    warpgroup_commit_batch();
    warpgroup_wait<0>();
    warpgroup_fence_operand(sums);
    pipe.consumer_release(state);
  }
  Tensor results = make_tensor_like<T>(sums);
  CUTE_UNROLL
  for (int i = 0; i < size(sums); ++i) results(i) = T(sums(i) != sums(i) ? sums(i) : max(sums(i), 0.0f));
  auto store = make_tiled_copy_C(Copy_Atom<SM90_U32x4_STSM_N, T>{}, mma).get_slice(threadIdx.x - 128);
  copy(Copy_Atom<SM90_U32x4_STSM_N, T>{}, store.retile_S(results), store.partition_D(shared_c));
  tma_store_fence();
  cutlass::arch::NamedBarrier::sync(256, 1);
  if (threadIdx.x == 128) {
    copy(store_c, from_c, to_c);
    tma_store_arrive();
    tma_store_wait<0>();
  }
}
