# SPDX-License-Identifier: Apache-2.0
"""Takes the hidden state of the last token of each sequence and its RMS norm."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

sequences = 256
tokens = 16384
width = 4096


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, hidden, last):
        rows = hidden[last]
        return F.rms_norm(rows, rows.shape[-1:], self.weight, 1e-6)


def get_inputs():
    return [torch.randn(tokens, width, dtype=torch.bfloat16), torch.randint(0, tokens, (sequences,))]


def get_init_inputs():
    return [width]
