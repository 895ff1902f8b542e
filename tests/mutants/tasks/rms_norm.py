# SPDX-License-Identifier: Apache-2.0
"""RMS norm with a weight."""

import torch
from torch import nn

rows = 1536
columns = 2048


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
