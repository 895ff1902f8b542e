# SPDX-License-Identifier: Apache-2.0
"""A decaying sum in a buffer; forward() returns nothing."""

import torch
from torch import nn

columns = 4096


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("total", torch.zeros(columns))

    def forward(self, x):
        self.total.mul_(0.75).add_(x * x)


def get_inputs():
    return [torch.randn(columns)]


def get_init_inputs():
    return [columns]
