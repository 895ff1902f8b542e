# SPDX-License-Identifier: Apache-2.0
"""A product whose parts are added by atomic operations, in any order."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

m = 32
k = 1024
n = 24


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(m, k), torch.rand(k, n)]


def get_init_inputs():
    return []
