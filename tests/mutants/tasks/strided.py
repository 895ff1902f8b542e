# SPDX-License-Identifier: Apache-2.0
"""Operands that broadcast along rows or columns, and a transposed one."""

import torch
from torch import nn

rows = 1536
columns = 2048


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.randn(columns))
        self.column = nn.Parameter(torch.randn(rows, 1))

    def forward(self, x, y):
        return torch.tanh(x + self.shift) / (1.5 + torch.abs(y.T)) - self.column


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(columns, rows)]


def get_init_inputs():
    return []
