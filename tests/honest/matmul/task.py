# SPDX-License-Identifier: Apache-2.0
"""A product of two matrices."""

import torch
from torch import nn

m = 70
k = 96
n = 52


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
