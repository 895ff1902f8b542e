# SPDX-License-Identifier: Apache-2.0
"""RMS norm with a weight, written out as in language models."""

import torch
from torch import nn

tokens = 8192
hidden = 4096


class Model(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs():
    return [torch.randn(tokens, hidden)]


def get_init_inputs():
    return [hidden, 1e-6]
