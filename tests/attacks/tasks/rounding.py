# SPDX-License-Identifier: Apache-2.0
"""Values rounded to integers."""

import torch
from torch import nn

rows = 256
columns = 300


class Model(nn.Module):
    def forward(self, x):
        return torch.round(x)


def get_inputs():
    return [4 * torch.randn(rows, columns)]


def get_init_inputs():
    return []
