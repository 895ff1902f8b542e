# SPDX-License-Identifier: Apache-2.0
"""A reduction with pointwise work before and after it."""

import torch
from torch import nn

rows = 16384
columns = 8192


class Model(nn.Module):
    def __init__(self, negative_slope, scale):
        super().__init__()
        self.act = nn.LeakyReLU(negative_slope)
        self.scale = scale

    def forward(self, x):
        return torch.tanh(self.act(x).mean(dim=-1) * self.scale)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [0.1, 3.0]
