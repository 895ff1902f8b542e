# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900
"""Convolutions and pooling from end to end: each module gets a correct program, at every shape."""
import json
import subprocess
import sys

import harness

TASK = '''import torch
import torch.nn as nn


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


class Windows(harness.Case):
    def check(self, window, shape, result="self.window(x)", device="sim:h200", sizes="",
              options=()):
        """Returns the plan of the first program, which has to be correct."""
        text = TASK.format(window=window, shape=shape, result=result)
        text = text.replace("\n\n\nclass", "\n" + sizes + "\n\nclass", 1)
        self.optimize(self.write("window.py", text), device, options)
        return json.loads((self.folder / "best/plan.json").read_text())

    def optimize(self, task, device="sim:h200", options=()):
        done = self.cutegen("optimize", task, "--model", "builtin", "--device", device,
                            "--evaluations", 1, "--out", "best", *options,
                            timeout=300)
        self.assert_code(done, 0)
        self.assertIn("correct on", done.out)

    def test_strided_dilated_convolution(self):
        self.check("Conv2d(3, 10, 3, stride=2, padding=1, dilation=2)", "2, 3, 17, 19",
                   "torch.relu(self.window(x))")

    def test_other_gpus(self):
        self.check("Conv1d(6, 8, 5, groups=2, bias=False)", "2, 6, 33", device="sim:a100")

    def test_transposed_convolution(self):
        self.check("ConvTranspose3d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)",
                   "2, 4, 3, 5, 6")

    def test_pooling(self):
        self.check("MaxPool2d(3, stride=2, padding=1, dilation=2, ceil_mode=True)", "2, 4, 17, 18")
        self.check("AvgPool1d(4, stride=3, padding=2, ceil_mode=True, count_include_pad=False)",
                   "2, 4, 20")
        self.check("AvgPool3d(3, stride=2, padding=1)", "2, 4, 7, 9, 8")

    def test_depthwise(self):
        # The groups vary with the channels, so the plan must take them from the shapes.
        self.check("Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)",
                   "2, channels, 16, 24", sizes="channels = 24")

    def test_plain_3d(self):
        self.check("Conv3d(3, 10, (3, 2, 1), padding=(1, 0, 2), stride=(2, 1, 1))", "2, 3, 7, 8, 9")

    def test_half_precision(self):
        for window, result in harness.some(
            ("Conv2d(4, 8, 3).bfloat16()", "self.window(x.bfloat16())"),
            ("MaxPool2d(2)", "self.window(x.half())"),
            ("Conv2d(4, 8, 3).half()", "torch.relu(self.window(x.half()))"),
            most=2,
        ):  # fmt: skip
            self.check(window, "2, 4, 9, 11", result)

    def test_tails(self):
        self.check("Conv2d(8, 8, 3, padding=1)", "2, 8, 9, 11", "torch.relu(self.window(x) + x)")
        self.check("Sequential(nn.Conv2d(8, 6, 3), nn.BatchNorm2d(6).eval())", "2, 8, 9, 11")

    def test_more_pooling(self):
        self.check("AvgPool2d(3, stride=2, padding=1, divisor_override=5)", "2, 4, 17, 18")
        plan = self.check("MaxPool1d(4, stride=3, padding=1)", "2, 4, 20")
        self.assertEqual(len(plan["steps"]), 1, "views around the pooling are no copies")
        self.check("MaxPool3d(3, stride=2, padding=1)", "2, 4, 7, 9, 8")

    def test_large_windows(self):
        # No tile of a window of 64 x 64 fits shared memory.
        self.check("AvgPool2d(64, stride=64)", "1, 2, 130, 128")
        self.check("AvgPool2d(11)", "1, 2, 70, 68")

    def test_depthwise_in_one_and_three_axes(self):
        self.check("Conv1d(6, 12, 5, groups=6, dilation=2)", "2, 6, 70")
        self.check("Conv3d(4, 4, (2, 3, 1), groups=4, stride=(1, 2, 1), padding=1)",
                   "2, 4, 5, 7, 9")

    def test_a_weight_of_any_name(self):
        for name in harness.some("weight", "tile", "sums"):
            text = TASK.format(window=f"Parameter(torch.rand(6, 1, 3, 3)); self.{name} = self.window",
                               shape="2, 6, 9, 10",
                               result=f"nn.functional.conv2d(x, self.{name}, groups=6)")
            self.optimize(self.write("window.py", text))

    def test_channels_last(self):
        self.check("Conv2d(4, 8, 3)", "2, 4, 9, 11",
                   "self.window(x.to(memory_format=torch.channels_last))")

    def test_windows_beyond_the_input(self):
        # Padding and dilation are larger than the input: most places of the kernel never meet it.
        self.check("Conv2d(3, 5, 3, padding=9, dilation=9)", "2, 3, 4, 5")

    def test_a_permuted_input(self):
        self.check("Conv2d(4, 8, 3, padding=1)", "2, 9, 11, 4",
                   "self.window(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)")

    def test_tensor_cores(self):
        # Several tiles, stages of the depth and tiles of channels; then phases of a stride.
        plan = self.check("Conv2d(40, 136, 3, padding=1)", "1, 40, 20, 70", "torch.relu(self.window(x))")
        self.assertEqual([step["kernel"] for step in plan["steps"]], ["pack", "window"])
        plan = self.check("ConvTranspose2d(channels, 24, 4, stride=3, padding=1, output_padding=1)",
                          "2, channels, 9, 40", sizes="channels = 20")
        self.assertEqual(plan["arch"], ["sm_90a"])

    def test_work_that_depends_on_the_channel_alone(self):
        self.check("Sequential(nn.Conv2d(8, 24, 3), norm(24))", "2, 8, 9, 11", sizes=NORM)
        source = (self.folder / "best/kernel.cu").read_text()
        self.assertIn("kChannelValues = 4;", source)
        self.assertEqual(source.count("rsqrt("), 1)

    def test_more_tiles_than_ctas(self):
        # A CTA has several tiles: the weights stay; then each of its tiles has another phase.
        self.check("Conv2d(8, 8, 3)", "300, 8, 6, 20")
        self.check("ConvTranspose2d(8, 8, 4, stride=2, padding=1)", "140, 8, 5, 8")

    def test_transposed_padding(self):
        # More padding than the kernel reaches; then results of a phase begin one step later.
        self.check("ConvTranspose2d(8, 6, 2, stride=3, padding=2, output_padding=1)", "2, 8, 7, 9")
        self.check("ConvTranspose1d(8, 8, 3, stride=3, dilation=2, padding=4, output_padding=2)",
                   "2, 8, 30")

    def test_tensor_cores_in_strict_float32(self):
        # Lines of 36 are aligned, so producers read runs; then single elements along the kernel.
        plan = self.check("Conv2d(12, 20, 3, padding=1)", "1, 12, 10, 36",
                          options=("--math-mode", "fp32"))
        self.assertEqual([step["kernel"] for step in plan["steps"]], ["pack", "window"])
        self.check("Conv1d(3, 8, 5, stride=2)", "2, 3, 301", options=("--math-mode", "fp32"))

    def test_reductions_over_the_channels(self):
        # A softmax writes all channels, a logsumexp with a tail one value for each place.
        plan = self.check("Conv1d(8, 8, 3, padding=1)", "2, 8, 40",
                          "torch.tanh(self.window(x * self.window(x).softmax(1)).logsumexp(1) - 1)")
        self.assertEqual([step["kernel"] for step in plan["steps"]],
                         ["pack_1", "window_1", "pack_2", "window_2"])

    def test_generated_modules(self):
        for folder in ("suite", "again"):
            subprocess.run([sys.executable, harness.ROOT / "tests/gen/windows.py", "--count", "14", "--out",
                            self.folder / folder], check=True)  # fmt: skip
        files = sorted((self.folder / "suite/level1").iterdir())
        self.assertEqual(len(files), 14)
        for file in files:
            self.assertEqual(file.read_text(), (self.folder / "again/level1" / file.name).read_text())
        done = self.cutegen("bench", "--kernelbench", self.folder / "suite", "--tasks", "2,10,14",
                            "--evaluations", 1, "--no-profile", "--out", "level1",
                            "--runs", self.folder / "runs", timeout=300)  # fmt: skip
        self.assert_code(done, 0)
        self.assertIn("3 tasks: 3 correct", done.out)

    def test_stages(self):
        # A softmax along a line is no part of the convolution's kernel.
        plan = self.check("Conv2d(3, 8, 3)", "2, 3, 10, 12", "torch.softmax(self.window(x), dim=3)")
        self.assertEqual([step["kernel"] for step in plan["steps"]], ["pack_1", "window_1", "reduction_2"])


if __name__ == "__main__":
    harness.main()
