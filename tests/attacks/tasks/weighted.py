# SPDX-License-Identifier: Apache-2.0
"""Small in its file; the side file adds a shape that is too large to be run in full: 2 GiB in, 2 GiB out."""

import torch
from torch import nn

rows = 64
columns = 1000


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
