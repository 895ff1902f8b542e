#include <cute/tensor.hpp>
using namespace cute;

extern "C" __global__ void load(const float* x, float* y) {
  auto gx = make_tensor(make_gmem_ptr(x), Layout<Shape<_8>>{});
  auto r = make_tensor<float>(Layout<Shape<_6>>{});
  copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, gx, r);
  y[threadIdx.x] = r(0);
}
