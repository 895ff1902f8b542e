# SPDX-License-Identifier: Apache-2.0
"""A product of two large tensors that overwrites the first one."""

import torch
from torch import nn

rows = 8192
columns = 4096


class Model(nn.Module):
    def forward(self, x, y):
        x.mul_(y)


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []
