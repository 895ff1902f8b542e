# SPDX-License-Identifier: Apache-2.0
"""Softmax over rows, as in the scores of attention or the head of a classifier."""

import torch
from torch import nn

batch = 4096
classes = 32768


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(batch, classes)]


def get_init_inputs():
    return []
