# SPDX-License-Identifier: Apache-2.0
"""A mean that can be predicted from the distribution of the inputs."""

import torch
from torch import nn

rows = 64
columns = 4096


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
