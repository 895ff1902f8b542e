# SPDX-License-Identifier: Apache-2.0
"""A transposed convolution with a bias."""

import torch
from torch import nn

batch = 2
inputs = 6
outputs = 4
height = 18
width = 15


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.ConvTranspose2d(inputs, outputs, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, inputs, height, width)]


def get_init_inputs():
    return [inputs, outputs]
