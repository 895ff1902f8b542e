# SPDX-License-Identifier: Apache-2.0
"""Layer normalisation with weights."""

import torch
from torch import nn

rows = 60
features = 520


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [features]
