# SPDX-License-Identifier: Apache-2.0
"""A chain of operators on each element."""

import torch
from torch import nn

rows = 64
columns = 1000


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x) * 2.0 - torch.sigmoid(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
