# SPDX-License-Identifier: Apache-2.0
"""Honest: one kernel, built by torch when the file is imported."""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = """
#include <torch/extension.h>
torch::Tensor biased_relu(torch::Tensor x, torch::Tensor bias);
"""
CUDA = """
#include <ATen/cuda/CUDAContext.h>
#include <torch/types.h>
__global__ void kernel(const float* x, const float* bias, float* out, long long n, int width) {
  long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i] + bias[i % width], 0.f) * 1.5f;
}
torch::Tensor biased_relu(torch::Tensor x, torch::Tensor bias) {
  auto out = torch::empty_like(x);
  long long n = x.numel();
  kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), n, bias.numel());
  return out;
}
"""
built = load_inline("biased_relu", [CPP], [CUDA], functions=["biased_relu"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return built.biased_relu(x, self.bias)
