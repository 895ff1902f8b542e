# SPDX-License-Identifier: Apache-2.0
"""A mean along the middle axis."""

import torch
from torch import nn

batch = 32
steps = 256
channels = 512


class Model(nn.Module):
    def forward(self, x):
        return torch.mean(x, dim=1)


def get_inputs():
    return [torch.randn(batch, steps, channels)]


def get_init_inputs():
    return []
