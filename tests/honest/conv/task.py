# SPDX-License-Identifier: Apache-2.0
"""A convolution with a bias."""

import torch
from torch import nn

batch = 3
inputs = 5
outputs = 7
height = 20
width = 26


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, inputs, height, width)]


def get_init_inputs():
    return [inputs, outputs]
