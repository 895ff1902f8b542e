# SPDX-License-Identifier: Apache-2.0
"""Batch norm in evaluation with an affine map, per channel."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

batch = 6
channels = 20
length = 90


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return []
