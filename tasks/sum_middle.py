# SPDX-License-Identifier: Apache-2.0
"""A sum over the middle axis: neighbouring threads read neighbouring columns."""

import torch
from torch import nn

batch = 128
steps = 4096
channels = 2048


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(batch, steps, channels)]


def get_init_inputs():
    return []
