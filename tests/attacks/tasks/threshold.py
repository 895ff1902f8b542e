# SPDX-License-Identifier: Apache-2.0
"""A threshold: values of at most 0.25 become 3."""

import torch
from torch import nn
from torch.nn import functional as F

rows = 256
columns = 300


class Model(nn.Module):
    def forward(self, x):
        return F.threshold(x, 0.25, 3.0)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
