#include <cute/tensor.hpp>

extern "C" __global__ void relu(const float* x, float* y, int n) {
  auto gx = make_tensor(cute::make_gmem_ptr(x), cute::make_shape(n));
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) y[i] = fmaxf(gx(i), 0.0f);
}
