# SPDX-License-Identifier: Apache-2.0
"""Adds a bias and the residual, then applies layer norm and GELU."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

tokens = 8192
width = 3072


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width, dtype=torch.float16))
        self.norm = nn.LayerNorm(width, dtype=torch.float16)

    def forward(self, x, residual):
        return F.gelu(self.norm(x + self.bias + residual))


def get_inputs():
    return [torch.randn(tokens, width, dtype=torch.float16) for _ in range(2)]


def get_init_inputs():
    return [width]
