# SPDX-License-Identifier: Apache-2.0
"""A chain of pointwise operators with a broadcast bias, as after a linear layer."""

import torch
import torch.nn.functional as F
from torch import nn

batch = 4096
features = 12288


class Model(nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.1)
        self.scale = scale

    def forward(self, x, residual):
        return F.gelu(x + self.bias) * self.scale + residual


def get_inputs():
    return [torch.randn(batch, features), torch.randn(batch, features)]


def get_init_inputs():
    return [features, 0.5]
