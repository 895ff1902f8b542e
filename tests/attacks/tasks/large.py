# SPDX-License-Identifier: Apache-2.0
"""Too large to be run in full: 2 GiB in, 2 GiB out."""

import torch
from torch import nn

rows = 16384
columns = 32768


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
