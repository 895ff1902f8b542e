# SPDX-License-Identifier: Apache-2.0
"""A product of several tiles along each axis."""

import torch
from torch import nn

m = 1024
k = 512
w = 768


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, w)]


def get_init_inputs():
    return []
