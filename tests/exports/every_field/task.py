# SPDX-License-Identifier: Apache-2.0
"""Two results: a matrix with weighted columns, and the sum of each of its rows."""

import torch
from torch import nn

rows = 96
columns = 1000


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns) + 0.5)
        self.scale = 0.25

    def forward(self, x, shifts):
        y = x * self.weight**2 + shifts[0]
        return y, y.sum(1) * self.scale + shifts[1]


def get_inputs():
    return [torch.randn(rows, columns), [torch.randn(columns), torch.randn(rows)]]


def get_init_inputs():
    return [columns]
