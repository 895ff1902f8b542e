# SPDX-License-Identifier: Apache-2.0
"""Causal attention over a prompt."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

batch = 4
heads = 32
length = 4096
head_dim = 128


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [torch.randn(batch, heads, length, head_dim, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return []
