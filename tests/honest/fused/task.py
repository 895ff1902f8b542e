# SPDX-License-Identifier: Apache-2.0
"""A linear layer, an activation and a scale in one kernel."""

import torch
from torch import nn

batch = 50
inputs = 130
outputs = 90


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 0.5


def get_inputs():
    return [torch.randn(batch, inputs)]


def get_init_inputs():
    return [inputs, outputs]
