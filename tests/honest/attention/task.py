# SPDX-License-Identifier: Apache-2.0
"""Scaled dot products, their softmax, and a weighted sum."""

import torch
from torch import nn

heads = 6
length = 48
depth = 32


class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.randn(1, heads, length, depth), torch.randn(1, heads, length, depth),
            torch.randn(1, heads, length, depth)]


def get_init_inputs():
    return []
