# SPDX-License-Identifier: Apache-2.0
"""Attention with an additive mask, which hides all keys from every fourth query."""

import torch
from torch import nn

heads = 6
length = 48
depth = 32


class Model(nn.Module):
    def forward(self, q, k, v, mask):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def get_inputs():
    mask = torch.zeros(length, length)
    mask[::4] = -torch.inf
    mask[1::4, ::3] = -torch.inf
    return [torch.randn(1, heads, length, depth), torch.randn(1, heads, length, depth),
            torch.randn(1, heads, length, depth), mask]


def get_init_inputs():
    return []
