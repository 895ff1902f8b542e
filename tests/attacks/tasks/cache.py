# SPDX-License-Identifier: Apache-2.0
"""One step of decoding: stores a key and a value in their caches, then computes attention over the whole caches."""

import torch
from torch import nn

heads, length, width = 16, 192, 32


class Model(nn.Module):
    def forward(self, q, k, v, at, k_cache, v_cache):
        k_cache.index_copy_(1, at, k)
        v_cache[:, at] = v
        scores = (k_cache @ q.unsqueeze(-1)).squeeze(-1) * 0.125
        return (torch.softmax(scores, -1).unsqueeze(1) @ v_cache).squeeze(1)


def get_inputs():
    k, v = (torch.randn(heads, 1, width) for _ in range(2))
    k_cache, v_cache = (torch.zeros(heads, length, width) for _ in range(2))
    return [torch.randn(heads, width), k, v, torch.randint(length, (1,)), k_cache, v_cache]


def get_init_inputs():
    return []
