# SPDX-License-Identifier: Apache-2.0
"""One long running sum by look-back over the blocks before."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 1
columns = 20000


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
