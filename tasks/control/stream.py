# SPDX-License-Identifier: Apache-2.0
"""The control of memory: its kernel is timed beside baselines, so that days can be compared."""

import torch
from torch import nn

rows = 4096
columns = 16384


class Model(nn.Module):
    def forward(self, x):
        return x * 2.0 + 1.0


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
