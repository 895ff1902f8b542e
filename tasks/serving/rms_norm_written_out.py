# SPDX-License-Identifier: Apache-2.0
"""RMS norm as models write it out: float32 inside, a bfloat16 weight after the cast."""

import torch
from torch import nn

tokens = 4096
width = 4096


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def get_inputs():
    return [torch.randn(tokens, width, dtype=torch.bfloat16)]


def get_init_inputs():
    return [width]
