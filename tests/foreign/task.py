# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

rows, columns = 8192, 8192


class Model(nn.Module):
    """A bias, a ReLU and a factor: three passes of PyTorch, one of a kernel."""

    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.relu(x + self.bias) * 1.5


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [columns]
