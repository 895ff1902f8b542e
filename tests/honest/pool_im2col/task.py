# SPDX-License-Identifier: Apache-2.0
"""Average pooling of images whose channels come last."""
import torch
import torch.nn as nn
import torch.nn.functional as F

images = 3
height = 33
width = 46
channels = 40


class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x.permute(0, 3, 1, 2), 3, stride=2, padding=1).permute(0, 2, 3, 1)


def get_inputs():
    return [torch.randn(images, height, width, channels)]


def get_init_inputs():
    return []
