# SPDX-License-Identifier: Apache-2.0
"""The mean squared difference."""

import torch
from torch import nn

rows = 100
columns = 300


class Model(nn.Module):
    def forward(self, x, y):
        return torch.mean((x - y) ** 2)


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []
