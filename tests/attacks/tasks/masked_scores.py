# SPDX-License-Identifier: Apache-2.0
"""A softmax of scores with a finite mask. The scale also multiplies the mask's value."""

import torch
from torch import nn

rows = 48
depth = 32


class Model(nn.Module):
    def forward(self, x, y):
        hidden = torch.ones(rows, rows, dtype=torch.bool).triu(1)
        scores = (x @ y.T).masked_fill(hidden, -40.0)
        return torch.softmax(scores * 0.125, dim=-1)


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(rows, depth)]


def get_init_inputs():
    return []
