// SPDX-License-Identifier: Apache-2.0
// silu_and_mul as an extension of PyTorch: a template over the dtype, and the host function that
// launches it. The side file names only this function.
#include <ATen/cuda/CUDAContext.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <torch/extension.h>

#include <algorithm>

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be on the GPU")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

namespace activation {

constexpr int kVectorBytes = 16;

template <typename scalar_t, int kVector>
struct alignas(sizeof(scalar_t) * kVector) Pack {
  scalar_t at[kVector];
};

__device__ __forceinline__ float to_float(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ __forceinline__ void store(__half& to, float v) { to = __float2half(v); }
__device__ __forceinline__ void store(__nv_bfloat16& to, float v) { to = __float2bfloat16(v); }

__device__ __forceinline__ float silu(float z) { return z / (1.0f + __expf(-z)); }

template <typename scalar_t, int kVector>
__global__ void __launch_bounds__(1024)
    silu_and_mul_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ x, int hidden) {
  using Vector = Pack<scalar_t, kVector>;
  const int64_t token = blockIdx.x;
  const auto* gate = reinterpret_cast<const Vector*>(x + token * 2 * hidden);
  const auto* up = reinterpret_cast<const Vector*>(x + token * 2 * hidden + hidden);
  auto* row = reinterpret_cast<Vector*>(out + token * hidden);
  for (int i = threadIdx.x; i < hidden / kVector; i += blockDim.x) {
    const Vector g = gate[i], u = up[i];
    Vector r;
#pragma unroll
    for (int k = 0; k < kVector; ++k) store(r.at[k], silu(to_float(g.at[k])) * to_float(u.at[k]));
    row[i] = r;
  }
}

}  // namespace activation

void silu_and_mul(torch::Tensor& out, const torch::Tensor& input) {
  CHECK_CUDA(input);
  CHECK_CONTIGUOUS(input);
  const int hidden = input.size(-1) / 2;
  const int64_t tokens = input.numel() / input.size(-1);
  constexpr int kVector = activation::kVectorBytes / sizeof(__half);
  TORCH_CHECK(hidden % kVector == 0, "rows must be whole vectors");
  if (tokens == 0) return;
  const dim3 grid(tokens);
  const dim3 block(std::min(std::max(hidden / kVector, 32), 1024));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  if (input.scalar_type() == at::ScalarType::Half) {
    activation::silu_and_mul_kernel<__half, kVector><<<grid, block, 0, stream>>>(
        static_cast<__half*>(out.data_ptr()), static_cast<const __half*>(input.data_ptr()), hidden);
  } else {
    activation::silu_and_mul_kernel<__nv_bfloat16, kVector><<<grid, block, 0, stream>>>(
        static_cast<__nv_bfloat16*>(out.data_ptr()),
        static_cast<const __nv_bfloat16*>(input.data_ptr()), hidden);
  }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("silu_and_mul", &silu_and_mul); }
