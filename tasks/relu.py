# SPDX-License-Identifier: Apache-2.0
"""The simplest task: one activation over a large matrix."""

import torch
from torch import nn

rows = 8192
columns = 16384


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
