# SPDX-License-Identifier: Apache-2.0
"""Layer norm: a mean, then a variance, then each element."""

import torch
from torch import nn

rows = 1536
columns = 2048


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
