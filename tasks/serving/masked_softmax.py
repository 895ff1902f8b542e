# SPDX-License-Identifier: Apache-2.0
"""Softmax of attention scores under a boolean mask."""

import torch
from torch import nn

batch = 8
heads = 16
queries = 1024
keys = 1024


class Model(nn.Module):
    def forward(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


def get_inputs():
    scores = torch.randn(batch, heads, queries, keys, dtype=torch.float16)
    mask = torch.rand(batch, 1, queries, keys) > 0.2
    return [scores, mask]


def get_init_inputs():
    return []
