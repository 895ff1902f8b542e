# SPDX-License-Identifier: Apache-2.0
"""The largest less the smallest value of each row."""

import torch
from torch import nn

rows = 1536
columns = 2048


class Model(nn.Module):
    def forward(self, x):
        return torch.amax(x, dim=-1) - torch.amin(x, dim=-1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
