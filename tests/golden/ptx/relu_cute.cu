#include <cute/tensor.hpp>
using namespace cute;
extern "C" __device__ const int cg_tile = 1024;
extern "C" __global__ void __launch_bounds__(256) relu(float const* x, float* y, int n) {
  int tile = blockIdx.x;
  int base = tile * 1024 + threadIdx.x * 4;
  if (base + 4 <= n) {
    auto gx = make_tensor(make_gmem_ptr(x + base), make_shape(Int<4>{}));
    auto gy = make_tensor(make_gmem_ptr(y + base), make_shape(Int<4>{}));
    auto r = make_fragment_like(gx);
    copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, gx, r);
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) r(i) = fmaxf(r(i), 0.f);
    copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, r, gy);
  } else {
    for (int i = base; i < n; ++i) y[i] = fmaxf(x[i], 0.f);
  }
}
