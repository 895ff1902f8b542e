# SPDX-License-Identifier: Apache-2.0
"""Few long columns: the reduced axis is split over CTAs."""

import torch
from torch import nn

rows = 65536
columns = 64


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=0)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
