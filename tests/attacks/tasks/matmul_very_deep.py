# SPDX-License-Identifier: Apache-2.0
"""A product of few rows and columns with sums of 524,288 terms."""

import torch
from torch import nn

m = 256
k = 524288
n = 256


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y.T


def get_inputs():
    return [torch.randn(m, k), torch.randn(n, k)]


def get_init_inputs():
    return []
