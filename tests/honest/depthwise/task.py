# SPDX-License-Identifier: Apache-2.0
"""A convolution of each channel by itself."""

import torch
from torch import nn

batch = 3
channels = 9
height = 24
width = 22


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, groups=channels)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels]
