# SPDX-License-Identifier: Apache-2.0
"""The first input where it is larger, otherwise the second one negated."""

import torch
from torch import nn

rows = 256
columns = 300


class Model(nn.Module):
    def forward(self, x, y):
        return torch.where(x > y, x, -y)


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []
