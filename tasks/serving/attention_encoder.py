# SPDX-License-Identifier: Apache-2.0
"""Attention of an encoder, whose heads lie next to each other along the feature axis."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

batch = 8
length = 2048
heads = 16
head_dim = 64


class Model(nn.Module):
    def forward(self, q, k, v):
        q, k, v = (t.view(t.shape[0], t.shape[1], -1, head_dim).transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        return out.transpose(1, 2).flatten(2)


def get_inputs():
    return [torch.randn(batch, length, heads * head_dim, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
