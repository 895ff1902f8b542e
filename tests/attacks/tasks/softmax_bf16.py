# SPDX-License-Identifier: Apache-2.0
"""Softmax of bfloat16 rows."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 48
columns = 640


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)


def get_inputs():
    return [torch.randn(rows, columns, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
