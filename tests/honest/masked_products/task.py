# SPDX-License-Identifier: Apache-2.0
"""The lower triangle of a product, times a third matrix. The order decides which large sums overflow."""

import torch
from torch import nn

batch = 6
rows = 9
depth = 8
columns = 8


class Model(nn.Module):
    def forward(self, x, y, z):
        return torch.tril(x @ y.transpose(1, 2)) @ z


def get_inputs():
    return [torch.randn(batch, rows, depth), torch.randn(batch, rows, depth), torch.randn(batch, rows, columns)]


def get_init_inputs():
    return []
