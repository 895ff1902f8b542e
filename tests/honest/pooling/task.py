# SPDX-License-Identifier: Apache-2.0
"""The largest of each window of two by two."""

import torch
from torch import nn

batch = 4
channels = 6
height = 34
width = 38


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return []
