# SPDX-License-Identifier: Apache-2.0
"""For each value, the number of limits that it reaches."""

import torch
from torch import nn

rows = 256
columns = 300


class Model(nn.Module):
    def forward(self, x, b):
        return (x.unsqueeze(-1) >= b).sum(-1).to(torch.float32)


def get_inputs():
    return [torch.randn(rows, columns), torch.sort(torch.randn(12)).values]


def get_init_inputs():
    return []
