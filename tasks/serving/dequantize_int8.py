# SPDX-License-Identifier: Apache-2.0
"""Turns int8 weights into bfloat16 with a scale for each row."""

import torch
from torch import nn

rows = 14336
width = 4096


class Model(nn.Module):
    def forward(self, weight, scale):
        return (weight.float() * scale.unsqueeze(-1)).to(torch.bfloat16)


def get_inputs():
    weight = torch.randint(-127, 128, (rows, width), dtype=torch.int8)
    return [weight, torch.rand(rows) / 64]


def get_init_inputs():
    return []
