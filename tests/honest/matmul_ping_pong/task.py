# SPDX-License-Identifier: Apache-2.0
"""A product of bfloat16 matrices. Three CTAs compute its tiles; two warpgroups of each take tiles in turn."""

import torch
from torch import nn

rows = 392
columns = 200
depth = 200


class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x @ y.T)


def get_inputs():
    return [torch.randn(rows, depth, dtype=torch.bfloat16), torch.randn(columns, depth, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
