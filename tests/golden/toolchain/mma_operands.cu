#include <cute/tensor.hpp>
using namespace cute;

extern "C" __global__ void gemm_tile(const half_t* a, const half_t* b, float* c) {
  auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2, _1>>{});
  auto ga = make_tensor(make_gmem_ptr(a), Layout<Shape<_64, _32>, Stride<_32, _1>>{});
  auto gb = make_tensor(make_gmem_ptr(b), Layout<Shape<_64, _32>, Stride<_32, _1>>{});
  auto gc = make_tensor(make_gmem_ptr(c), Layout<Shape<_64, _64>, Stride<_64, _1>>{});
  auto thread = mma.get_slice(threadIdx.x);
  auto ra = thread.partition_fragment_A(ga);
  auto rb = thread.partition_fragment_B(gb);
  auto rc = thread.partition_fragment_C(gc);
  gemm(mma, ra, rc, rb);
}
