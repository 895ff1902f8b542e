# SPDX-License-Identifier: Apache-2.0
"""A product of bfloat16 matrices."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

m = 64
k = 512
n = 96


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(m, k, dtype=torch.bfloat16), torch.rand(k, n, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
