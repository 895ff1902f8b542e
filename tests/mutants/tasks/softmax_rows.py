# SPDX-License-Identifier: Apache-2.0
"""Softmax along the innermost axis."""

import torch
from torch import nn

rows = 1536
columns = 2048


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
