# SPDX-License-Identifier: Apache-2.0
"""A matrix times a vector."""

import torch
from torch import nn

m = 300
k = 700


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, 1)]


def get_init_inputs():
    return []
