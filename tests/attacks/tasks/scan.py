# SPDX-License-Identifier: Apache-2.0
"""A running product that is nearly zero after a few elements."""

import torch
from torch import nn

rows = 16
columns = 256


class Model(nn.Module):
    def forward(self, x):
        return torch.cumprod(x, dim=1)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
