# SPDX-License-Identifier: Apache-2.0
"""Applies a repetition penalty and a bias to the logits before sampling."""

import torch
from torch import nn

batch = 128
vocabulary = 128256


class Model(nn.Module):
    def forward(self, logits, seen, penalty, bias):
        penalty = penalty.unsqueeze(-1)
        punished = torch.where(logits > 0, logits / penalty, logits * penalty)
        return torch.where(seen, punished, logits) + bias


def get_inputs():
    logits = torch.randn(batch, vocabulary, dtype=torch.float32)
    seen = torch.rand(batch, vocabulary) > 0.9
    return [logits, seen, torch.rand(batch) + 1, torch.randn(vocabulary)]


def get_init_inputs():
    return []
