# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=50
"""Convolutions and pooling from end to end: each module gets a correct program, at every shape.

A commit chooses a twelfth of the modules and one of two in strict float32; with CUTEGEN_ALL_CASES=1, the test judges
all of them.
"""
from __future__ import annotations

import subprocess
import sys
from typing import Any

import harness

TASK = '''import torch
import torch.nn as nn
{sizes}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.window = nn.{window}

    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.rand({shape})]


def get_init_inputs():
    return []
'''


NORM = '''

def norm(channels):
    made = nn.BatchNorm2d(channels).eval()
    made.running_mean.uniform_(-1, 1)
    made.running_var.uniform_(0.5, 2)
    with torch.no_grad():
        made.weight.uniform_(-2, 2)
        made.bias.uniform_(-1, 1)
    return made
'''


def task(window: str, shape: str, result: str = "self.window(x)", sizes: str = "") -> str:
    return TASK.format(window=window, shape=shape, result=result, sizes=sizes)


def named(name: str) -> str:
    """A depthwise convolution whose weight has this name."""
    return task(f"Parameter(torch.rand(6, 1, 3, 3)); self.{name} = self.window", "2, 6, 9, 10",
                f"nn.functional.conv2d(x, self.{name}, groups=6)")


TASKS = {
    "strided_dilated_convolution": task("Conv2d(3, 10, 3, stride=2, padding=1, dilation=2)", "2, 3, 17, 19",
                                        "torch.relu(self.window(x))"),
    "transposed_convolution": task(
        "ConvTranspose3d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", "2, 4, 3, 5, 6"),
    "max_pool": task("MaxPool2d(3, stride=2, padding=1, dilation=2, ceil_mode=True)", "2, 4, 17, 18"),
    "average_pool_1d": task("AvgPool1d(4, stride=3, padding=2, ceil_mode=True, count_include_pad=False)", "2, 4, 20"),
    "average_pool_3d": task("AvgPool3d(3, stride=2, padding=1)", "2, 4, 7, 9, 8"),
    "average_pool_with_a_divisor": task("AvgPool2d(3, stride=2, padding=1, divisor_override=5)", "2, 4, 17, 18"),
    "max_pool_1d": task("MaxPool1d(4, stride=3, padding=1)", "2, 4, 20"),
    "max_pool_3d": task("MaxPool3d(3, stride=2, padding=1)", "2, 4, 7, 9, 8"),
    # No tile of a window of 64 x 64 fits shared memory.
    "pool_64": task("AvgPool2d(64, stride=64)", "1, 2, 130, 128"),
    "pool_11": task("AvgPool2d(11)", "1, 2, 70, 68"),
    # The groups vary with the channels, so the plan must take them from the shapes.
    "depthwise": task("Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)", "2, channels, 16, 24",
                      sizes="channels = 24"),
    "depthwise_1d": task("Conv1d(6, 12, 5, groups=6, dilation=2)", "2, 6, 70"),
    "depthwise_3d": task("Conv3d(4, 4, (2, 3, 1), groups=4, stride=(1, 2, 1), padding=1)", "2, 4, 5, 7, 9"),
    "plain_3d": task("Conv3d(3, 10, (3, 2, 1), padding=(1, 0, 2), stride=(2, 1, 1))", "2, 3, 7, 8, 9"),
    "bf16_convolution": task("Conv2d(4, 8, 3).bfloat16()", "2, 4, 9, 11", "self.window(x.bfloat16())"),
    "fp16_pool": task("MaxPool2d(2)", "2, 4, 9, 11", "self.window(x.half())"),
    "residual": task("Conv2d(8, 8, 3, padding=1)", "2, 8, 9, 11", "torch.relu(self.window(x) + x)"),
    "batch_norm": task("Sequential(nn.Conv2d(8, 6, 3), nn.BatchNorm2d(6).eval())", "2, 8, 9, 11"),
    "channels_last": task("Conv2d(4, 8, 3)", "2, 4, 9, 11", "self.window(x.to(memory_format=torch.channels_last))"),
    # Padding and dilation are larger than the input, so most filter taps never read it.
    "windows_beyond_the_input": task("Conv2d(3, 5, 3, padding=9, dilation=9)", "2, 3, 4, 5"),
    "permuted_input": task("Conv2d(4, 8, 3, padding=1)", "2, 9, 11, 4",
                           "self.window(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)"),
    # Several tiles, stages of the depth and tiles of channels; then phases of a stride.
    "tensor_cores": task("Conv2d(40, 136, 3, padding=1)", "1, 40, 20, 70", "torch.relu(self.window(x))"),
    "tensor_cores_transposed": task("ConvTranspose2d(channels, 24, 4, stride=3, padding=1, output_padding=1)",
                                    "2, channels, 9, 40", sizes="channels = 20"),
    # Patches of a channels-last input; a transposed convolution of stride 1 reverses its filter.
    "patches": task("Conv2d(64, 72, 3, padding=1)", "1, 64, 20, 70", "torch.relu(self.window(x)) + 1"),
    "patches_transposed": task("ConvTranspose2d(64, 48, 3, padding=1)", "2, 64, 17, 13", "torch.tanh(self.window(x))"),
    "patches_of_planes": task("Conv3d(64, 40, (3, 2, 3), padding=(1, 0, 1), dilation=(1, 2, 1))", "1, 64, 4, 11, 12"),
    "patches_of_lines": task("Conv1d(136, 48, 5, padding=2).bfloat16()", "2, 136, 150",
                             "self.window(x.bfloat16()) + self.window(x.bfloat16()).mean()"),
    # Phases of a transposed convolution, side by side in a tile: pairs, results one by one, three phases. Then one
    # phase in a tile, which has all channels; and a softmax over the channels.
    "phases": task("ConvTranspose2d(64, 40, 4, stride=2, padding=1).bfloat16()", "3, 64, 30, 31",
                   "self.window(x.bfloat16()).relu()"),
    "phases_of_odd_lines": task("ConvTranspose2d(64, 48, 3, stride=2, padding=1).bfloat16()", "2, 64, 27, 33",
                                "torch.tanh(self.window(x.bfloat16()))"),
    "phases_of_a_line": task("ConvTranspose1d(64, 64, 6, stride=3, padding=2).half()", "4, 64, 300",
                             "self.window(x.half())"),
    "phases_and_a_minimum": task("ConvTranspose3d(64, 72, 3, stride=(2, 1, 2), padding=1)", "2, 64, 5, 9, 17",
                                 "self.window(x).amin(1, keepdim=True)"),
    "softmax_of_rows": task("Conv2d(64, 64, 3, padding=1).bfloat16()", "2, 64, 24, 31",
                            "self.window(x.bfloat16()).softmax(1)"),
    # Images whose channels do not begin at multiples of 16 bytes.
    "rows_of_small_images": task("Conv2d(72, 40, 3, padding=1).bfloat16()", "5, 72, 7, 7", "self.window(x.bfloat16())"),
    "rows_of_floats": task("Conv3d(64, 40, 3, stride=(1, 2, 1), padding=(2, 1, 0))", "2, 64, 5, 9, 8"),
    "pixels_of_small_images": task("Conv2d(136, 72, 1).bfloat16()", "5, 136, 7, 7", "self.window(x.bfloat16()).relu()"),
    "pixels_in_fours": task("Conv2d(520, 72, 1).half()", "3, 520, 14, 14", "self.window(x.half()) * 2"),
    "norm_of_pixels": task("Sequential(nn.Conv2d(136, 72, 1), norm(72)).bfloat16()", "3, 136, 4, 20",
                           "self.window(x.bfloat16()).relu() + x[:, :72]", sizes=NORM),
    "pixels_in_place": task("Conv2d(136, 72, 1).half()", "3, 136, 4, 20", "self.window(x.half()).relu()"),
    # Values that depend only on the channel are computed once.
    "norm_of_channels": task("Sequential(nn.Conv2d(8, 24, 3), norm(24))", "2, 8, 9, 11", sizes=NORM),
    # A CTA computes several tiles: all with the same weights, then each with another phase.
    "many_tiles": task("Conv2d(8, 8, 3)", "300, 8, 6, 20"),
    "many_tiles_transposed": task("ConvTranspose2d(8, 8, 4, stride=2, padding=1)", "140, 8, 5, 8"),
    # More padding than the kernel reaches; then results of a phase begin one step later.
    "transposed_padding_2d": task("ConvTranspose2d(8, 6, 2, stride=3, padding=2, output_padding=1)", "2, 8, 7, 9"),
    "transposed_padding_1d": task("ConvTranspose1d(8, 8, 3, stride=3, dilation=2, padding=4, output_padding=2)",
                                  "2, 8, 30"),
    # A softmax writes all channels, a logsumexp with a tail one value for each place.
    "reductions_over_the_channels": task(
        "Conv1d(8, 8, 3, padding=1)", "2, 8, 40",
        "torch.tanh(self.window(x * self.window(x).softmax(1)).logsumexp(1) - 1)"),
    # A softmax along a row of the image needs a kernel of its own.
    "stages": task("Conv2d(3, 8, 3)", "2, 3, 10, 12", "torch.softmax(self.window(x), dim=3)"),
    # Padding: a convolution adds zeros itself, also on one side only; other padding is a kernel of its own.
    "zeros_on_one_side": task("Conv1d(4, 8, 3, dilation=2)", "2, 4, 40", "self.window(nn.functional.pad(x, (4, 0)))"),
    "padding_modes": task('Conv2d(4, 8, 3, padding=2, padding_mode="reflect")', "2, 4, 9, 12",
                          'nn.functional.pad(self.window(x), (3, 0, -1, 2), mode="replicate")'),
    "constant_padding": task("MaxPool2d(3)", "2, 4, 9, 12",
                             "nn.functional.pad(self.window(x), (1, 2, 0, 1, 1, 0), value=0.5)"),
    "flip_and_roll": task("Conv2d(4, 8, 3)", "2, 4, 9, 12", "torch.roll(self.window(x).flip(3), (1, -2), (1, 2))"),
    # Interpolation by a factor, to a given size and to another tensor's size.
    "nearest": task("Upsample(scale_factor=1.5)", "2, 3, 9, 13"),
    "bilinear": task("Conv2d(4, 6, 3, stride=2, padding=1)", "2, 4, 10, 13",
                     'nn.functional.interpolate(self.window(x), size=x.shape[2:], mode="bilinear")'),
    "aligned_trilinear": task('Upsample(size=(5, 7, 6), mode="trilinear", align_corners=True)', "2, 3, 4, 9, 6"),
    "bicubic": task('Upsample(scale_factor=2, mode="bicubic")', "2, 3, 9, 7"),
    "linear": task('Upsample(scale_factor=3, mode="linear")', "2, 3, 31"),
    "adaptive_average": task("AdaptiveAvgPool2d((3, 5))", "2, 4, 10, 13"),
    "adaptive_average_1d": task("AdaptiveAvgPool1d(7)", "2, 4, 30"),
    "adaptive_maximum": task("AdaptiveMaxPool2d(3)", "2, 4, 10, 13"),
    # Branches write their parts of a convolution's input; shuffles of channels are views.
    "joined_branches": task(
        "Conv2d(4, 6, 1); self.other = nn.Conv2d(4, 5, 3, padding=1); self.last = nn.Conv2d(15, 7, 3, padding=1)",
        "2, 4, 9, 12", "self.last(torch.cat([torch.relu(self.window(x)), x, self.other(x)], 1))"),
    "channel_shuffle": task("Conv2d(4, 16, 3, padding=1)", "2, 4, 8, 6",
                            "torch.relu(nn.functional.channel_shuffle(self.window(x), 4))"),
    "pixel_shuffles": task("Conv2d(16, 4, 3, padding=1)", "2, 4, 8, 6", "nn.functional.pixel_shuffle("
                           "torch.relu(self.window(nn.functional.pixel_unshuffle(x, 2))), 2)"),
    "instance_norm": task("Sequential(nn.Conv2d(4, 6, 3), nn.InstanceNorm2d(6, affine=True))", "3, 4, 9, 12"),
    # sigmoid(-88) is a subnormal number, and silu(-88) is not.
    "silu_near_underflow": task("AvgPool2d(2)", "2, 4, 40, 40", "nn.functional.silu(-87.2 - 1.4 * self.window(x))"),
    **{f"weight_named_{name}": named(name) for name in harness.some("weight", "tile", "sums")},
    **dict(harness.some(("fp16_convolution", task("Conv2d(4, 8, 3).half()", "2, 4, 9, 11",
                                                  "torch.relu(self.window(x.half()))")), most=0)),
}
# Rows of 36 elements are aligned, so producers read runs; the second task reads single elements.
STRICT = {"runs": task("Conv2d(12, 20, 3, padding=1)", "1, 12, 10, 36"),
          "single_elements": task("Conv1d(3, 8, 5, stride=2)", "2, 3, 301"),
          # Pairs of half-precision numbers: several chunks of channels, both parts of a pair in a line, phases.
          "pairs": task("Conv2d(136, 72, 3, padding=1)", "1, 136, 20, 70", "torch.relu(self.window(x)) + 1"),
          "pairs_in_a_line": task("Conv2d(28, 40, (5, 7), padding=2)", "2, 28, 30, 43"),
          "pairs_of_planes": task("Conv3d(32, 24, 3, padding=1)", "1, 32, 5, 20, 24", "torch.tanh(self.window(x))"),
          "pairs_of_phases": task("ConvTranspose2d(128, 40, 4, stride=2, padding=1)", "8, 128, 30, 31"),
          "pairs_and_a_minimum": task("Conv1d(64, 48, 5, padding=2)", "3, 64, 700", "self.window(x).amin(1)")}
# Windows side by side. The test shapes must have images that the windows cover.
PATCHES = {
    "patches_of_14": task("Conv2d(3, 1024, 14, stride=14).bfloat16()", "64, 3, 224, 224",
                          "self.window(x.bfloat16()).flatten(2).transpose(1, 2)"),
    "patches_of_16": task("Conv2d(3, 768, 16, stride=16)", "32, 3, 224, 224",
                          "self.window(x).flatten(2).transpose(1, 2)"),
    "patches_with_positions": task(
        "Conv2d(3, 384, 16, stride=16); self.first = nn.Parameter(torch.rand(1, 1, 384)); "
        "self.places = nn.Parameter(torch.rand(1, 197, 384))", "32, 3, 224, 224",
        "self.places + "
        "torch.cat([self.first.expand(x.shape[0], -1, -1), self.window(x).flatten(2).transpose(1, 2)], 1)"),
    "two_levels_of_patches": task("Conv2d(3, 64, 4, stride=4); self.next = nn.Conv2d(64, 128, 2, stride=2)",
                                  "16, 3, 96, 96", "self.next(torch.relu(self.window(x)))"),
}
KERNELS = {"tensor_cores": ["pack", "window"], "runs": ["pack", "window"],
           "rows_of_small_images": ["elementwise_1", "arrange_2", "window_2"],
           "rows_of_floats": ["arrange", "arrange_wide", "window"],
           **dict.fromkeys(("phases", "phases_of_odd_lines", "phases_of_a_line", "softmax_of_rows"),
                           ["elementwise_1", "arrange_2", "window_2"]),
           "phases_and_a_minimum": ["arrange", "arrange_wide", "window"],
           "pixels_of_small_images": ["elementwise_1", "arrange_2", "window_2"],
           "pixels_in_fours": ["elementwise_1", "matmul_2"], "pixels_in_place": ["elementwise_1", "matmul_2"],
           "reductions_over_the_channels": ["pack_1", "window_1", "pack_2", "window_2"],
           "stages": ["pack_1", "window_1", "reduction_2"]}
# The last two kernels compute the results if pairs are too inaccurate for some values.
KERNELS.update(dict.fromkeys((name for name in STRICT if name.startswith("pairs")),
                             ["arrange", "window", "pack_wide", "window_wide"]))
GENERATED = (2, 10, 14)


class Windows(harness.Case):
    def check(self, tasks: dict[str, str], *options: object, **settings: Any) -> None:
        for name, row in self.solve(tasks, *options, **settings).items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                self.assertEqual(row.kernels, KERNELS.get(name, row.kernels))
                if name == "max_pool_1d":
                    self.assertEqual(len(row.kernels), 1, "views around the pooling are no copies")
                if name == "norm_of_channels":
                    source = (row.folder / "kernel.cu").read_text()
                    self.assertIn("kChannelValues = 4;", source)
                    self.assertEqual(source.count("rsqrt("), 1)
                if name == "tensor_cores_transposed":
                    self.assertEqual(row.plan["arch"], ["sm_90a"])

    def generated(self) -> dict[str, str]:
        """Modules of the generator, which gives the same ones again."""
        for folder in ("made", "again"):
            subprocess.run([sys.executable, harness.ROOT / "tests/gen/windows.py", "--count", "14", "--out",
                            self.folder / folder], check=True)
        files = sorted((self.folder / "made/level1").iterdir())
        self.assertEqual(len(files), 14)
        for file in files:
            self.assertEqual(file.read_text(), (self.folder / "again/level1" / file.name).read_text())
        chosen = [file for file in files if int(file.name.split("_")[0]) in GENERATED]
        return {f"generated_{file.stem}": file.read_text() for file in chosen}

    def test_on_an_h200(self) -> None:
        self.check(harness.in_turn({**TASKS, **self.generated()}, 12))

    def test_in_strict_float32(self) -> None:
        self.check(harness.in_turn(STRICT, 2), "--math-mode", "fp32")

    def test_patches(self) -> None:
        for name, row in self.solve(harness.in_turn(PATCHES, 2)).items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                self.assertTrue(any(kernel.startswith("matmul") for kernel in row.kernels), row.kernels)

    def test_on_an_a100(self) -> None:
        self.check({"grouped": task("Conv1d(6, 8, 5, groups=2, bias=False)", "2, 6, 33")}, device="sim:a100")


if __name__ == "__main__":
    harness.main()
