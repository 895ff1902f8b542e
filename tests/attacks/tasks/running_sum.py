# SPDX-License-Identifier: Apache-2.0
"""Sums along rows that are longer than a chunk."""

import torch
from torch import nn

rows = 64
columns = 65536


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
