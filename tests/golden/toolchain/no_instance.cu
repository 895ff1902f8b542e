#include <cute/tensor.hpp>
using namespace cute;

extern "C" __global__ void tiles(const float* x, float* y, int n) {
  auto gx = make_tensor(make_gmem_ptr(x), make_shape(n), make_stride(1), Int<4>{});
  y[threadIdx.x] = gx(threadIdx.x);
}
