# SPDX-License-Identifier: Apache-2.0
"""Adds the bias of a packed projection and splits it into queries, keys and values by heads."""

import torch
from torch import nn

batch = 8
length = 2048
heads = 16
head_dim = 128


class Model(nn.Module):
    def __init__(self, heads, head_dim):
        super().__init__()
        self.heads = heads
        self.bias = nn.Parameter(torch.zeros(3 * heads * head_dim, dtype=torch.bfloat16))

    def forward(self, packed):
        parts = (packed + self.bias).chunk(3, dim=-1)
        return tuple(part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)


def get_inputs():
    return [torch.randn(batch, length, 3 * heads * head_dim, dtype=torch.bfloat16)]


def get_init_inputs():
    return [heads, head_dim]
