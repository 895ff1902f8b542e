# SPDX-License-Identifier: Apache-2.0
"""The compute-bound control: cutegen times its kernel with the baselines, to compare times of different days."""

import torch
from torch import nn

m = 2048
k = 2048
n = 2048


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
