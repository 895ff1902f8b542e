# SPDX-License-Identifier: Apache-2.0
"""Running sums, one thread a row."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 12
columns = 3000


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
