# SPDX-License-Identifier: Apache-2.0
"""A deep product of positive numbers: sums grow far beyond their terms."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

m = 64
k = 4096
n = 96


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(m, k), torch.rand(k, n)]


def get_init_inputs():
    return []
