# SPDX-License-Identifier: Apache-2.0
"""Looks up the embeddings of tokens and scales them."""

import torch
from torch import nn

batch = 8
length = 2048
vocabulary = 32000
width = 4096


class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width, dtype=torch.bfloat16)

    def forward(self, ids):
        return self.table(ids) * 64.0


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, width]
