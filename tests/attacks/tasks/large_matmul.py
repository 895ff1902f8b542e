# SPDX-License-Identifier: Apache-2.0
"""A product of 69 GFLOP."""

import torch
from torch import nn

m = 4096
k = 4096
n = 2048


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
