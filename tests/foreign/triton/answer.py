# SPDX-License-Identifier: Apache-2.0
"""Honest: one kernel in Triton."""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, bias_ptr, out_ptr, n, width, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    y = tl.load(x_ptr + at, mask=inside) + tl.load(bias_ptr + at % width, mask=inside)
    tl.store(out_ptr + at, tl.where(y < 0, 0.0, y) * 1.5, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 1024),)](x, self.bias, out, n, self.bias.numel(), BLOCK=1024)
        return out
