# SPDX-License-Identifier: Apache-2.0
"""An elementwise map of float16 numbers."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 64
columns = 512


class Model(nn.Module):
    def forward(self, x):
        return F.leaky_relu(x, 0.5) * 0.5


def get_inputs():
    return [torch.randn(rows, columns, dtype=torch.float16)]


def get_init_inputs():
    return []
