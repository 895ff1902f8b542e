# SPDX-License-Identifier: Apache-2.0
"""A function that is cheaper to compute with a small error."""

import torch
from torch import nn

rows = 64
columns = 2048


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
