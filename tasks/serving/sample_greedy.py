# SPDX-License-Identifier: Apache-2.0
"""The probability of the likeliest token at a temperature for each sequence, and its place."""

import torch
from torch import nn

batch = 256
vocabulary = 128256


class Model(nn.Module):
    def forward(self, logits, temperature):
        scores = torch.softmax(logits.float() / temperature.unsqueeze(-1), dim=-1)
        return scores.amax(-1), logits.argmax(-1)


def get_inputs():
    logits = torch.randn(batch, vocabulary, dtype=torch.bfloat16)
    return [logits, torch.rand(batch) + 0.5]


def get_init_inputs():
    return []
