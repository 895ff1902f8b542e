#include <cute/tensor.hpp>
using namespace cute;

extern "C" __global__ void deep(const float* x, float* y) {
  auto copy = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{},
                              Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _4>>{});
  auto gx = make_tensor(make_gmem_ptr(x), Layout<Shape<_128, Shape<_8, _4>>, Stride<_32, Stride<_4, _1>>>{});
  auto part = copy.get_slice(threadIdx.x).partition_S(gx);
  int wrong = part;
  y[0] = wrong;
}
