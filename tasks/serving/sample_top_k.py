# SPDX-License-Identifier: Apache-2.0
"""The likeliest tokens of each sequence and their probabilities at a temperature."""

import torch
from torch import nn

batch = 64
vocabulary = 32000
kept = 50


class Model(nn.Module):
    def forward(self, logits, temperature):
        values, tokens = torch.topk(logits.float() / temperature.unsqueeze(-1), kept, dim=-1)
        return torch.softmax(values, dim=-1), tokens


def get_inputs():
    logits = torch.randn(batch, vocabulary, dtype=torch.float16)
    return [logits, torch.rand(batch) + 0.5]


def get_init_inputs():
    return []
