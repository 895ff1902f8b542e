#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes PyTorch modules of ordinary sizes, which measure programs that nobody tuned to a benchmark.

Usage: bench/ordinary.py DIR [--blocks]

Writes one file per module, as KernelBench names them: DIR/1_NAME.py. With --blocks, writes the modules of
ordinary_blocks.py instead: blocks of networks, losses and other modules of several operators.

A module's weights and inputs have its dtype. `cutegen bench --kernelbench` and `cutegen baselines --kernelbench`
take the folder above DIR; docs/measurements/generated_modules.md has the figures.
"""

import argparse
import pathlib

from ordinary_blocks import BLOCKS
from ordinary_module import Module, image

MODULES = [
    # Matrix products.
    Module("linear_relu", "float32", "F.relu(self.a(x))", {"x": (2048, 1536)}, "self.a = nn.Linear(1536, 3072)"),
    Module("linear_small_batch", "float32", "self.a(x)", {"x": (128, 2048)}, "self.a = nn.Linear(2048, 1000)"),
    Module("mlp_gelu", "float32", "self.b(F.gelu(self.a(x)))", {"x": (4096, 768)},
           "self.a = nn.Linear(768, 3072)\nself.b = nn.Linear(3072, 768)"),
    Module("similarity", "float32", "F.normalize(x, dim=1) @ F.normalize(y, dim=1).T",
           {"x": (4096, 512), "y": (4096, 512)}),
    Module("products_batched", "float32", "x @ y", {"x": (64, 256, 320), "y": (64, 320, 384)}),
    Module("distances", "float32", "(x * x).sum(1, keepdim=True) - 2 * x @ y.T + (y * y).sum(1)",
           {"x": (8192, 256), "y": (1024, 256)}),
    Module("product_transposed", "float32", "x.T @ y", {"x": (4096, 1024), "y": (4096, 2048)}),
    Module("softmax_of_logits", "float32", "F.softmax(self.a(x), dim=-1)", {"x": (1024, 1024)},
           "self.a = nn.Linear(1024, 10000)"),
    Module("linear", "bfloat16", "self.a(x)", {"x": (8192, 1024)}, "self.a = nn.Linear(1024, 1024)"),
    Module("linear_wide", "bfloat16", "self.a(x)", {"x": (2048, 4096)}, "self.a = nn.Linear(4096, 11008, bias=False)"),
    Module("linear_silu", "bfloat16", "F.silu(self.a(x))", {"x": (4096, 2048)}, "self.a = nn.Linear(2048, 5632)"),
    Module("linear_residual", "bfloat16", "x + self.a(h)", {"x": (4096, 2048), "h": (4096, 5632)},
           "self.a = nn.Linear(5632, 2048, bias=False)"),
    Module("swiglu", "bfloat16", "F.silu(self.a(x)) * self.b(x)", {"x": (2048, 3072)},
           "self.a = nn.Linear(3072, 8192, bias=False)\nself.b = nn.Linear(3072, 8192, bias=False)"),
    Module("head_of_classifier", "bfloat16", "self.a(x.mean(dim=1))", {"x": (256, 196, 768)},
           "self.a = nn.Linear(768, 1000)"),
    Module("linear_8_rows", "bfloat16", "self.a(x)", {"x": (8, 4096)}, "self.a = nn.Linear(4096, 14336, bias=False)"),
    Module("linear_1_row", "bfloat16", "self.a(x)", {"x": (1, 8192)}, "self.a = nn.Linear(8192, 8192, bias=False)"),
    Module("linear_64_rows", "bfloat16", "F.gelu(self.a(x))", {"x": (64, 5120)}, "self.a = nn.Linear(5120, 5120)"),
    Module("linear_layer_norm", "bfloat16", "self.n(x + self.a(h))", {"x": (8192, 1024), "h": (8192, 1024)},
           "self.a = nn.Linear(1024, 1024)\nself.n = nn.LayerNorm(1024)"),
    Module("qkv_heads", "bfloat16", "self.a(x).view(8, 1024, 3, 12, 64).permute(2, 0, 3, 1, 4)", {"x": (8, 1024, 768)},
           "self.a = nn.Linear(768, 2304)"),
    Module("products_batched_half", "float16", "torch.bmm(x, y)", {"x": (128, 256, 128), "y": (128, 128, 256)}),
    Module("square_half", "float16", "x @ y", {"x": (3072, 3072), "y": (3072, 3072)}),
    Module("experts_batched", "bfloat16", "torch.bmm(F.silu(torch.bmm(x, self.a)), self.b)", {"x": (8, 512, 1024)},
           "self.a = nn.Parameter(torch.randn(8, 1024, 2816) * 0.03)\n"
           "self.b = nn.Parameter(torch.randn(8, 2816, 1024) * 0.02)"),
    # Attention.
    Module("attention_causal", "bfloat16", "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
           {"q": (4, 16, 2048, 128), "k": (4, 16, 2048, 128), "v": (4, 16, 2048, 128)}),
    Module("attention_encoder", "float16", "F.scaled_dot_product_attention(q, k, v)",
           {"q": (32, 12, 512, 64), "k": (32, 12, 512, 64), "v": (32, 12, 512, 64)}),
    Module("attention_short", "bfloat16", "F.scaled_dot_product_attention(q, k, v)",
           {"q": (64, 12, 197, 64), "k": (64, 12, 197, 64), "v": (64, 12, 197, 64)}),
    Module("attention_cross", "bfloat16", "F.scaled_dot_product_attention(q, k, v)",
           {"q": (8, 10, 4096, 64), "k": (8, 10, 77, 64), "v": (8, 10, 77, 64)}),
    Module("attention_decode", "bfloat16", "F.scaled_dot_product_attention(q, k, v)",
           {"q": (32, 32, 1, 128), "k": (32, 32, 4096, 128), "v": (32, 32, 4096, 128)}),
    Module("attention_float", "float32", "torch.softmax(q @ k.transpose(-2, -1) * 0.125, dim=-1) @ v",
           {"q": (8, 12, 512, 64), "k": (8, 12, 512, 64), "v": (8, 12, 512, 64)}),
    Module("self_attention", "bfloat16",
           "self.o(F.scaled_dot_product_attention(*self.i(x).view(16, 512, 3, 12, 64).permute(2, 0, 3, 1, 4))"
           ".transpose(1, 2).reshape(16, 512, 768))", {"x": (16, 512, 768)},
           "self.i = nn.Linear(768, 2304)\nself.o = nn.Linear(768, 768)"),
    # Limited by memory.
    Module("layer_norm", "float32", "self.n(x)", {"x": (8192, 1024)}, "self.n = nn.LayerNorm(1024)"),
    Module("layer_norm_bf16", "bfloat16", "self.n(x)", {"x": (32768, 768)}, "self.n = nn.LayerNorm(768)"),
    Module("rms_norm_bf16", "bfloat16", "F.rms_norm(x, (4096,), self.w)", {"x": (8192, 4096)},
           "self.w = nn.Parameter(torch.ones(4096))"),
    Module("group_norm_silu", "bfloat16", "F.silu(self.n(x))", image(8, 320, 64), "self.n = nn.GroupNorm(32, 320)"),
    Module("instance_norm", "float32", "self.n(x)", image(16, 64, 128), "self.n = nn.InstanceNorm2d(64, affine=True)"),
    Module("batch_norm_eval_relu", "float32", "F.relu(self.n(x))", image(64, 128, 56),
           "self.n = nn.BatchNorm2d(128).eval()"),
    Module("softmax", "bfloat16", "F.softmax(x, dim=-1)", {"x": (8, 16, 1024, 1024)}),
    Module("log_softmax_rows", "float32", "F.log_softmax(x, dim=-1)", {"x": (2048, 32000)}),
    Module("softmax_channels", "float32", "F.softmax(x, dim=1)", image(16, 21, 256)),
    Module("bce_logits", "float32", "F.binary_cross_entropy_with_logits(x, y)",
           {"x": (8192, 2048), "y": "torch.rand(8192, 2048)"}),
    Module("smooth_l1", "float32", "F.smooth_l1_loss(x, y)", {"x": (4096, 8192), "y": (4096, 8192)}),
    Module("cosine_similarity", "float32", "F.cosine_similarity(x, y, dim=1)", {"x": (65536, 256), "y": (65536, 256)}),
    Module("mean_columns", "float32", "x.mean(dim=0)", {"x": (65536, 512)}),
    Module("std_rows", "float32", "x.std(dim=1)", {"x": (16384, 2048)}),
    Module("variance_space", "float32", "x.var(dim=(2, 3))", image(32, 256, 64)),
    Module("cumsum_rows", "float32", "torch.cumsum(x, dim=1)", {"x": (4096, 8192)}),
    Module("top_8", "float32", "torch.topk(x, 8, dim=-1)", {"x": (16384, 1024)}),
    Module("argmax_vocabulary", "float32", "torch.argmax(x, dim=-1)", {"x": (512, 50257)}),
    Module("transposition", "bfloat16", "x.transpose(1, 2).contiguous()", {"x": (64, 1024, 768)}),
    Module("channels_last_copy", "float32", "x.permute(0, 2, 3, 1).contiguous()", image(32, 128, 56)),
    Module("channels_first_copy", "bfloat16", "x.permute(0, 3, 1, 2).contiguous()", {"x": (32, 56, 56, 256)}),
    Module("pixel_shuffle", "float32", "F.pixel_shuffle(x, 2)", image(8, 256, 64)),
    Module("pixel_unshuffle", "float32", "F.pixel_unshuffle(x, 2)", image(16, 64, 128)),
    Module("upsample_nearest", "bfloat16", "F.interpolate(x, scale_factor=2, mode='nearest')", image(16, 128, 64)),
    Module("concatenate_channels", "bfloat16", "torch.cat([x, y], dim=1)",
           {"x": (16, 128, 64, 64), "y": (16, 128, 64, 64)}),
    Module("reflection_pad", "float32", "F.pad(x, (1, 1, 1, 1), mode='reflect')", image(16, 64, 128)),
    Module("glu", "bfloat16", "F.glu(x, dim=-1)", {"x": (8192, 8192)}),
    Module("dropout_residual_scale", "float32", "x + self.g * y", {"x": (16384, 1024), "y": (16384, 1024)},
           "self.g = nn.Parameter(torch.full((1024,), 0.1))"),
    Module("embedding_sum", "bfloat16", "F.embedding(i, self.t) + self.p",
           {"i": "torch.randint(0, 30000, (64, 512))"},
           "self.t = nn.Parameter(torch.randn(30000, 768))\nself.p = nn.Parameter(torch.randn(512, 768))"),
    Module("gather_rows", "bfloat16", "x[i]",
           {"x": (65536, 1024), "i": "torch.randint(0, 65536, (16384,))"}),
    Module("squeeze_excite", "bfloat16",
           "x * torch.sigmoid(self.b(F.relu(self.a(x.mean((2, 3))))))[:, :, None, None]", image(64, 256, 28),
           "self.a = nn.Linear(256, 16)\nself.b = nn.Linear(16, 256)"),
    Module("channel_attention_pool", "float32", "x.amax(dim=(2, 3)) + x.mean(dim=(2, 3))", image(64, 256, 56)),
    Module("rope", "bfloat16",
           "x * c + torch.cat([-x[..., 64:], x[..., :64]], dim=-1) * s",
           {"x": (2, 32, 4096, 128), "c": (4096, 128), "s": (4096, 128)}),
    # Convolutions and what follows them.
    Module("conv3_bn_relu", "float32", "F.relu(self.n(self.c(x)))", image(32, 128, 28),
           "self.c = nn.Conv2d(128, 128, 3, padding=1, bias=False)\nself.n = nn.BatchNorm2d(128).eval()"),
    Module("conv3_stride_2", "float32", "F.relu(self.c(x))", image(32, 128, 56),
           "self.c = nn.Conv2d(128, 256, 3, stride=2, padding=1)"),
    Module("conv1_expand", "float32", "self.c(x)", image(32, 256, 28), "self.c = nn.Conv2d(256, 512, 1)"),
    Module("conv7_stem", "float32", "F.max_pool2d(F.relu(self.n(self.c(x))), 3, 2, 1)", image(32, 3, 224),
           "self.c = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)\nself.n = nn.BatchNorm2d(64).eval()"),
    Module("conv3_group_norm", "float32", "F.silu(self.n(self.c(x)))", image(8, 128, 64),
           "self.c = nn.Conv2d(128, 128, 3, padding=1)\nself.n = nn.GroupNorm(32, 128)"),
    Module("depthwise3_relu6", "float32", "F.relu6(self.n(self.c(x)))", image(32, 192, 56),
           "self.c = nn.Conv2d(192, 192, 3, padding=1, groups=192, bias=False)\nself.n = nn.BatchNorm2d(192).eval()"),
    Module("transposed2_stride_2", "float32", "F.relu(self.c(x))", image(16, 256, 32),
           "self.c = nn.ConvTranspose2d(256, 128, 2, stride=2)"),
    Module("transposed4_stride_2", "float32", "F.leaky_relu(self.n(self.c(x)), 0.2)", image(16, 256, 32),
           "self.c = nn.ConvTranspose2d(256, 128, 4, stride=2, padding=1, bias=False)\n"
           "self.n = nn.BatchNorm2d(128).eval()"),
    Module("conv1d_audio", "float32", "F.gelu(self.c(x))", {"x": (16, 512, 3000)},
           "self.c = nn.Conv1d(512, 512, 3, stride=2)"),
    Module("conv3d_video", "float32", "F.relu(self.c(x))", {"x": (8, 64, 16, 56, 56)},
           "self.c = nn.Conv3d(64, 64, 3, padding=1)"),
    Module("conv3_bf16", "bfloat16", "F.relu(self.n(self.c(x)))", image(64, 128, 28),
           "self.c = nn.Conv2d(128, 128, 3, padding=1, bias=False)\nself.n = nn.BatchNorm2d(128).eval()"),
    Module("conv3_deep_bf16", "bfloat16", "F.relu(self.c(x))", image(64, 512, 7),
           "self.c = nn.Conv2d(512, 512, 3, padding=1)"),
    Module("conv1_bf16", "bfloat16", "self.n(self.c(x)) + y", {"x": (64, 128, 28, 28), "y": (64, 512, 28, 28)},
           "self.c = nn.Conv2d(128, 512, 1, bias=False)\nself.n = nn.BatchNorm2d(512).eval()"),
    Module("conv1_reduce_bf16", "bfloat16", "F.relu(self.c(x))", image(64, 1024, 14),
           "self.c = nn.Conv2d(1024, 256, 1)"),
    Module("conv3_stride_2_half", "float16", "F.relu(self.c(x))", image(64, 256, 28),
           "self.c = nn.Conv2d(256, 512, 3, stride=2, padding=1)"),
    Module("conv3_unet_half", "float16", "F.silu(self.c(x))", image(4, 320, 64),
           "self.c = nn.Conv2d(320, 320, 3, padding=1)"),
    Module("patches_bf16", "bfloat16", "self.c(x).flatten(2).transpose(1, 2)", image(64, 3, 224),
           "self.c = nn.Conv2d(3, 1024, 14, stride=14)"),
    Module("depthwise7_bf16", "bfloat16", "self.c(x)", image(32, 192, 56),
           "self.c = nn.Conv2d(192, 192, 7, padding=3, groups=192)"),
]

HEAD = """# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn.functional as F
from torch import nn


"""


def text(module: Module) -> str:
    layers = "".join(f"        {line}\n" for line in module.layers.splitlines())
    made = []
    for name, shape in module.inputs.items():
        value = shape if isinstance(shape, str) else f"torch.randn({', '.join(map(str, shape))})"
        made.append(f"    {name} = {value}\n")
        if "torch.rand" in value and "randint" not in value:
            made.append(f"    {name} = {name}.to(torch.{module.dtype})\n")
    return (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{layers}"
        f"        self.to(torch.{module.dtype})\n\n"
        f"    def forward(self, {', '.join(module.inputs)}):\n        return {module.result}\n\n\n"
        f"def get_inputs():\n{''.join(made)}    return [{', '.join(module.inputs)}]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--blocks", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number, module in enumerate(BLOCKS if options.blocks else MODULES, start=1):
        (options.folder / f"{number}_{module.name}.py").write_text(text(module))


if __name__ == "__main__":
    main()
