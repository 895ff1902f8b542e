# SPDX-License-Identifier: Apache-2.0
"""A convolution in float32."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

batch = 2
channels = 6
size = 14
filters = 5


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []
