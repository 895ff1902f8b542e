# SPDX-License-Identifier: Apache-2.0
"""Adds the embeddings of tokens and positions, then applies layer norm."""

import torch
from torch import nn

batch = 32
length = 512
vocabulary = 30522
width = 768


class Model(nn.Module):
    def __init__(self, vocabulary, length, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=0, dtype=torch.float16)
        self.places = nn.Parameter(torch.randn(length, width, dtype=torch.float16))
        self.norm = nn.LayerNorm(width, dtype=torch.float16)

    def forward(self, ids):
        return self.norm(self.tokens(ids) + self.places)


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, length, width]
