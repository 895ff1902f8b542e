# SPDX-License-Identifier: Apache-2.0
"""Values beyond 0.5 in magnitude; all others become zero."""

import torch
from torch import nn
from torch.nn import functional as F

rows = 256
columns = 300


class Model(nn.Module):
    def forward(self, x):
        return F.hardshrink(x, 0.5)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
