# SPDX-License-Identifier: Apache-2.0
"""A product of float32 with a bias and an activation."""

import torch
from torch import nn

M = 512
N = 768
K = 384


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x, y):
        return torch.relu(x @ y + self.bias)


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
