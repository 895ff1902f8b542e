# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding of queries and keys, whose pairs are neighbouring elements."""

import torch
from torch import nn

tokens = 16384
heads = 32
key_heads = 8
head_dim = 128


def rotate(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)


class Model(nn.Module):
    def forward(self, q, k, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return rotate(q, cos, sin), rotate(k, cos, sin)


def get_inputs():
    q = torch.randn(tokens, heads, head_dim, dtype=torch.bfloat16)
    k = torch.randn(tokens, key_heads, head_dim, dtype=torch.bfloat16)
    return [q, k, *(torch.randn(tokens, head_dim // 2, dtype=torch.bfloat16) for _ in range(2))]


def get_init_inputs():
    return []
