# SPDX-License-Identifier: Apache-2.0
"""Causal attention over a prompt, with four heads of queries for each head of keys."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

batch = 2
groups = 4
key_heads = 8
length = 4096
head_dim = 128


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def get_inputs():
    q = torch.randn(batch, groups * key_heads, length, head_dim, dtype=torch.bfloat16)
    k, v = (torch.randn(batch, key_heads, length, head_dim, dtype=torch.bfloat16) for _ in range(2))
    return [q, k, v]


def get_init_inputs():
    return []
