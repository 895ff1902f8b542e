# SPDX-License-Identifier: Apache-2.0
"""Attention with a padding mask, which hides some keys of each sentence."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

batch = 32
heads = 12
length = 512
head_dim = 64


class Model(nn.Module):
    def forward(self, q, k, v, visible):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)


def get_inputs():
    q, k, v = (torch.randn(batch, heads, length, head_dim, dtype=torch.float16) for _ in range(3))
    return [q, k, v, torch.rand(batch, 1, 1, length) > 0.2]


def get_init_inputs():
    return []
