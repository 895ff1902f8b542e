# SPDX-License-Identifier: Apache-2.0
"""Softmax of each row."""

import torch
from torch import nn

rows = 48
columns = 900


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
