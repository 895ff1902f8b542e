#include <cute/tensor.hpp>
using namespace cute;

extern "C" __global__ void transpose(const float* x, float* y, int m, int n) {
  auto layout = make_layout(make_shape(m, n), make_stride(n, Int<1>{}));
  auto gx = make_tensor(make_gmem_ptr(x), layout);
  auto tile = local_tile(gx, make_shape(Int<32>{}, Int<32>{}), make_coord(blockIdx.x));
  auto gy = make_tensor(make_gmem_ptr(y), make_layout(make_shape(n, m), make_stride(m)));
  y[0] = tile(0, 0) + gy(0, 0);
}
