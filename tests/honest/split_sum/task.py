# SPDX-License-Identifier: Apache-2.0
"""The mean of each row."""

import torch
from torch import nn

rows = 24
columns = 3000


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
