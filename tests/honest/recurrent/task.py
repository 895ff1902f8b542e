# SPDX-License-Identifier: Apache-2.0
"""A state that each step of time changes."""

import torch
from torch import nn

batch = 20
features = 40


class Model(nn.Module):
    def forward(self, x, h):
        states = []
        for t in range(6):
            h = torch.tanh(x[t] + 0.5 * h)
            states.append(h)
        return torch.stack(states)


def get_inputs():
    return [torch.randn(6, batch, features), torch.randn(batch, features)]


def get_init_inputs():
    return []
