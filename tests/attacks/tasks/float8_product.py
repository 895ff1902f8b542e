# SPDX-License-Identifier: Apache-2.0
"""A product of float8 with two scales, in float."""

import torch
from torch import nn

rows = 64
inner = 256
columns = 96


class Model(nn.Module):
    def forward(self, x, w, a, b):
        return (x.to(torch.float32) * a) @ (w.to(torch.float32) * b).T


def get_inputs():
    x = torch.randn(rows, inner).to(torch.float8_e4m3fn)
    w = torch.randn(columns, inner).to(torch.float8_e4m3fn)
    return [x, w, torch.rand(()) + 0.5, torch.rand(()) + 0.5]


def get_init_inputs():
    return []
