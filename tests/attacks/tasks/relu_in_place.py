# SPDX-License-Identifier: Apache-2.0
"""A ReLU that writes its input and returns that very tensor."""

import torch
from torch import nn

rows = 64
columns = 500


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
