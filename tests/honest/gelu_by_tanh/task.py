# SPDX-License-Identifier: Apache-2.0
"""GELU in its tanh form, by the hardware's exponential."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 64
columns = 300


class Model(nn.Module):
    def forward(self, x):
        return F.gelu(x, approximate="tanh")


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
