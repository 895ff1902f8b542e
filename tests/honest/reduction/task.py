# SPDX-License-Identifier: Apache-2.0
"""The sum of each column."""

import torch
from torch import nn

batch = 6
rows = 300
columns = 70


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)


def get_inputs():
    return [torch.randn(batch, rows, columns)]


def get_init_inputs():
    return []
