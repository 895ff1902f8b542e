# SPDX-License-Identifier: Apache-2.0
"""A copy of its inputs where they are positive, as the official ones are."""

import torch
from torch import nn

rows = 64
columns = 2048


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.leaky_relu(x, 0.01)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
