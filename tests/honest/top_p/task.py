# SPDX-License-Identifier: Apache-2.0
"""Top-p sampling: keeps the most probable tokens. Rounding decides the order of nearly equal probabilities."""

import torch
from torch import nn

rows = 3
vocabulary = 600


class Model(nn.Module):
    def forward(self, logits):
        p = torch.softmax(logits, -1)
        ordered, at = torch.sort(p, dim=-1, descending=True)
        sums = torch.cumsum(ordered, -1)
        kept = ordered.masked_fill(sums - ordered > 0.9, 0.0)
        kept = kept / kept.sum(-1, keepdim=True)
        return torch.zeros_like(p).scatter(-1, at, kept)


def get_inputs():
    return [3 * torch.randn(rows, vocabulary)]


def get_init_inputs():
    return []
