# SPDX-License-Identifier: Apache-2.0
"""Writes the keys and values of new tokens into the slots of the cache."""

import torch
from torch import nn

tokens = 4096
slots = 16384
heads = 8
head_dim = 128


class Model(nn.Module):
    def forward(self, k, v, k_cache, v_cache, slot_ids):
        k_cache.index_copy_(0, slot_ids, k)
        v_cache.index_copy_(0, slot_ids, v)


def get_inputs():
    k, v = (torch.randn(tokens, heads, head_dim, dtype=torch.bfloat16) for _ in range(2))
    caches = (torch.randn(slots, heads, head_dim, dtype=torch.bfloat16) for _ in range(2))
    return [k, v, *caches, torch.randperm(slots)[:tokens]]


def get_init_inputs():
    return []
