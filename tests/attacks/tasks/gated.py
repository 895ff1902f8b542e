# SPDX-License-Identifier: Apache-2.0
"""A gated product."""

import torch
from torch import nn

rows = 24
depth = 64
width = 40


class Model(nn.Module):
    def forward(self, x, g, u):
        return torch.nn.functional.silu(x @ g) * (x @ u)


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(depth, width) / 8, torch.randn(depth, width) / 8]


def get_init_inputs():
    return []
