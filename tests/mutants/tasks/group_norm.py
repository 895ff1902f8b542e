# SPDX-License-Identifier: Apache-2.0
"""Group norm."""

import torch
import torch.nn.functional as F
from torch import nn

batch = 64
channels = 64
size = 512


class Model(nn.Module):
    def forward(self, x):
        return F.group_norm(x, 8)


def get_inputs():
    return [torch.randn(batch, channels, size)]


def get_init_inputs():
    return []
