# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding of queries and keys, whose pairs are the halves of a head."""

import torch
from torch import nn

batch = 8
heads = 32
key_heads = 8
length = 2048
head_dim = 128


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Model(nn.Module):
    def forward(self, q, k, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return rotate(q, cos, sin), rotate(k, cos, sin)


def get_inputs():
    q = torch.randn(batch, heads, length, head_dim, dtype=torch.bfloat16)
    k = torch.randn(batch, key_heads, length, head_dim, dtype=torch.bfloat16)
    return [q, k, *(torch.randn(batch, length, head_dim, dtype=torch.bfloat16) for _ in range(2))]


def get_init_inputs():
    return []
