# SPDX-License-Identifier: Apache-2.0
"""A matrix times a number; its kernel reads the matrix through a tensor map."""

import torch
from torch import nn

rows = 200
columns = 264


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 0.75

    def forward(self, x):
        return x * self.factor


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
