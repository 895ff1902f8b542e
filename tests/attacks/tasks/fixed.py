# SPDX-License-Identifier: Apache-2.0
"""A layer that fixes its sizes: only the batch varies."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(1024, 256)

    def forward(self, x):
        return self.fc(x)


def get_inputs():
    return [torch.randn(32, 1024)]


def get_init_inputs():
    return []
