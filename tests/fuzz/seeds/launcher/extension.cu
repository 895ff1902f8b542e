// SPDX-License-Identifier: Apache-2.0
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <algorithm>

#define CHECK_INPUT(x) TORCH_CHECK(x.is_cuda(), #x " must be on the GPU")

namespace ours {

constexpr int kMost = 1024;

__device__ __forceinline__ float silu(float z) { return z / (1.0f + expf(-z)); }

template <typename scalar_t, int VEC>
__global__ void __launch_bounds__(kMost) act_kernel(scalar_t* __restrict__ out,
                                                    const scalar_t* __restrict__ input, int d) {
  const scalar_t* x = input + (long long)blockIdx.x * 2 * d;
  for (int i = threadIdx.x; i < d; i += blockDim.x)
    out[(long long)blockIdx.x * d + i] = scalar_t(silu(float(x[i])) * float(x[d + i]));
}

}  // namespace ours

inline int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

void silu_and_mul(torch::Tensor& out, torch::Tensor& input) {
  CHECK_INPUT(input);
  int d = input.size(-1) / 2;
  int64_t num_tokens = input.numel() / input.size(-1);
  TORCH_CHECK(d % 8 == 0 && input.is_contiguous(), "d must be a multiple of 8");
  if (num_tokens == 0) return;
  dim3 grid(num_tokens);
  dim3 block(std::min(d, ours::kMost));
  const at::cuda::OptionalCUDAGuard device_guard(device_of(input));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  // LAUNCH
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(input.scalar_type(), "act_kernel", [&] {
    ours::act_kernel<scalar_t, 8><<<grid, block, 0, stream>>>(
        out.data_ptr<scalar_t>(), input.data_ptr<scalar_t>(), d);
  });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("silu_and_mul", &silu_and_mul); }
