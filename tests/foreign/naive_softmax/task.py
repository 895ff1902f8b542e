# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

rows, columns = 8192, 8192


class Model(nn.Module):
    """A softmax over rows, too large for a test shape."""

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
