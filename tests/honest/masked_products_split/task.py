# SPDX-License-Identifier: Apache-2.0
"""The lower triangle of a product, times a third matrix. The products of low parts may overflow alone."""

import torch
from torch import nn

rows = 33
depth = 16
columns = 40


class Model(nn.Module):
    def forward(self, x, y, z):
        return (x @ y.T).tril() @ z


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(rows, depth), torch.randn(rows, columns)]


def get_init_inputs():
    return []
