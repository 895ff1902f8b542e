# SPDX-License-Identifier: Apache-2.0
"""Turns float8 weights into bfloat16 with a scale for each block of 128 by 128."""

import torch
from torch import nn

rows = 7168
width = 2048
block = 128


class Model(nn.Module):
    def forward(self, weight, scale):
        tiles = weight.to(torch.float32).unflatten(0, (-1, block)).unflatten(2, (-1, block))
        return (tiles * scale[:, None, :, None]).flatten(2).flatten(0, 1).to(torch.bfloat16)


def get_inputs():
    weight = torch.randn(rows, width).to(torch.float8_e4m3fn)
    return [weight, torch.rand(rows // block, width // block) / 64]


def get_init_inputs():
    return []
