# SPDX-License-Identifier: Apache-2.0
"""Sums of positive products, in which a lower precision causes only small relative errors."""

import torch
from torch import nn

m = 96
k = 256
w = 64


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(m, k), torch.rand(k, w)]


def get_init_inputs():
    return []
