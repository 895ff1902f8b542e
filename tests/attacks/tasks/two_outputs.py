# SPDX-License-Identifier: Apache-2.0
"""Two affine maps of one input."""

import torch
from torch import nn

rows = 20
depth = 48
width = 24


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(depth, width)
        self.second = nn.Linear(depth, width)

    def forward(self, x):
        return self.first(x), self.second(x)


def get_inputs():
    return [torch.randn(rows, depth)]


def get_init_inputs():
    return []
