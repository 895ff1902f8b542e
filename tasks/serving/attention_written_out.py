# SPDX-License-Identifier: Apache-2.0
"""Attention with an additive bias, written as products and a softmax."""

import torch
from torch import nn

batch = 8
heads = 16
length = 1024
head_dim = 64


class Model(nn.Module):
    def forward(self, q, k, v, bias):
        scores = q @ k.transpose(-2, -1) * 0.125 + bias
        return torch.softmax(scores, dim=-1) @ v


def get_inputs():
    q, k, v = (torch.randn(batch, heads, length, head_dim, dtype=torch.bfloat16) for _ in range(3))
    return [q, k, v, torch.randn(heads, length, length, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
