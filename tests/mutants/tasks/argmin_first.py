# SPDX-License-Identifier: Apache-2.0
"""The place of the smallest value of each column."""

import torch
from torch import nn

rows = 512
columns = 8192


class Model(nn.Module):
    def forward(self, x):
        return torch.argmin(x, dim=0)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
