# SPDX-License-Identifier: Apache-2.0
"""Scaled batched products with a transposed factor: the scores of attention, without softmax."""

import torch
from torch import nn

heads = 64
queries = 1024
keys = 768
width = 128


class Model(nn.Module):
    def forward(self, q, k):
        return torch.bmm(q, k.transpose(1, 2)) * 0.088


def get_inputs():
    return [torch.randn(heads, queries, width), torch.randn(heads, keys, width)]


def get_init_inputs():
    return []
