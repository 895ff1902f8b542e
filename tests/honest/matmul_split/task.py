# SPDX-License-Identifier: Apache-2.0
"""A product whose depth is cut into eight parts, added in a fixed order."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

m = 48
k = 2048
n = 40


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(m, k), torch.rand(k, n)]


def get_init_inputs():
    return []
