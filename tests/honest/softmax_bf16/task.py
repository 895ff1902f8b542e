# SPDX-License-Identifier: Apache-2.0
"""Softmax of bfloat16 rows in float32."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 16
columns = 600


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)


def get_inputs():
    return [torch.randn(rows, columns, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
