# SPDX-License-Identifier: Apache-2.0
"""The control of arithmetic: its kernel is timed beside baselines, so that days can be compared."""

import torch
from torch import nn

m = 2048
k = 2048
n = 2048


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
