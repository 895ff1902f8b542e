# SPDX-License-Identifier: Apache-2.0
"""Causal attention whose queries, keys and values are parts of one projection."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

batch = 8
length = 2048
heads = 12
head_dim = 64


class Model(nn.Module):
    def forward(self, x):
        q, k, v = x.view(x.shape[0], x.shape[1], 3, -1, head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(2)


def get_inputs():
    return [torch.randn(batch, length, 3 * heads * head_dim, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
