# SPDX-License-Identifier: Apache-2.0
"""Batch norm in train mode: the result, and running statistics that forward() mutates."""

import torch
from torch import nn

rows = 96
features = 48


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [features]
