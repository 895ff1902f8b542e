# SPDX-License-Identifier: Apache-2.0
"""A loss with class indices."""

import torch
import torch.nn.functional as F
from torch import nn

rows = 4096
classes = 1000


class Model(nn.Module):
    def forward(self, x, y):
        return F.cross_entropy(x, y)


def get_inputs():
    return [torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs():
    return []
