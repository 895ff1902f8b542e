# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding with a table of the cosines and sines of each position."""

import torch
from torch import nn

tokens = 8192
heads = 32
positions = 8192
head_dim = 128


class Model(nn.Module):
    def forward(self, q, table, ids):
        cos, sin = table[ids].unsqueeze(1).chunk(2, dim=-1)
        first, second = q.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def get_inputs():
    q = torch.randn(tokens, heads, head_dim, dtype=torch.bfloat16)
    table = torch.randn(positions, head_dim, dtype=torch.bfloat16)
    return [q, table, torch.randint(0, positions, (tokens,))]


def get_init_inputs():
    return []
