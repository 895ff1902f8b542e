#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random modules with convolutions and pooling, as a folder that `cutegen bench` reads.

Each module has one convolution (plain, transposed or depthwise) or pooling over one to three axes, with random
channels, sizes, kernel, stride, padding, dilation and groups, and up to three operators behind it: activations, bias,
scale, norms, pooling, reductions over space or channels. The same seed and count give the same files.

    windows.py --seed 1 --count 60 --out DIR
    cutegen bench --kernelbench DIR --levels 1 --device sim:h200 --evaluations 1 --no-profile
"""

import argparse
import pathlib
import random

ACTIVATIONS = [
    "torch.relu({x})", "torch.sigmoid({x})", "torch.tanh({x})", "F.gelu({x})", "F.silu({x})", "F.mish({x})",
    "F.hardswish({x})", "F.leaky_relu({x}, negative_slope=0.2)", "F.softplus({x})", "F.elu({x})",
    "torch.clamp({x}, -0.5, 0.75)", "F.hardtanh({x}, -1.0, 1.0)",
]
ALONE = ["{x} * 0.5 + 0.25", "{x} / 2.0", "{x} - 0.1", "torch.abs({x})"]
# Results with one channel.
OVER_CHANNELS = [
    "torch.amax({x}, dim=1, keepdim=True)", "torch.min({x}, dim=1, keepdim=True)[0]",
    "torch.logsumexp({x}, dim=1, keepdim=True)", "torch.sum({x}, dim=1, keepdim=True)",
    "torch.mean({x}, dim=1, keepdim=True)",
]
ALONG_CHANNELS = ["torch.softmax({x}, dim=1)", "torch.log_softmax({x}, dim=1)", "F.normalize({x}, dim=1)"]
# Results with one element per channel.
OVER_SPACE = ["torch.mean({x}, dim={space}, keepdim=True)", "F.adaptive_avg_pool{rank}d({x}, 1)",
              "torch.amax({x}, dim={space}, keepdim=True)"]
NORMS = ["batch", "group", "instance", "layer"]
SIZES = {1: [33, 64, 97, 128], 2: [12, 16, 21, 32], 3: [6, 8, 9, 12]}  # of one axis
CHANNELS = [3, 4, 6, 8, 12, 16, 20, 24, 32]
TAILS = ["activation", "activation", "alone", "parameter", "norm", "pool", "over channels", "along channels",
         "over space"]


class Module:
    def __init__(self, seed: int, index: int) -> None:
        self.rng = random.Random(f"{seed}:{index}")
        self.init: list[str] = []  # lines of __init__
        self.lines: list[str] = []  # lines of forward
        self.constants: dict[str, int] = {}
        self.rank = self.rng.choice([1, 2, 2, 2, 3, 3])
        self.batch = self.rng.choice([1, 2, 3, 4])
        self.space = [self.rng.choice(SIZES[self.rank]) for _ in range(self.rank)]
        self.kind = self.rng.choice(["Conv"] * 5 + ["ConvTranspose"] * 4 + ["depthwise", "pool"])
        self.dtype = self.rng.choice([""] * 8 + ["half", "bfloat16"])
        self.named = self.rng.random() < 0.6  # channels are constants of the module

    def each(self, values: list[int]) -> list[int]:
        """One value for all axes, or one for each."""
        if self.rng.random() < 0.6:
            return [self.rng.choice(values)] * self.rank
        return [self.rng.choice(values) for _ in range(self.rank)]

    def add(self, pattern: str) -> None:
        space = tuple(range(2, self.rank + 2))
        self.lines.append("t = " + pattern.format(x="t", rank=self.rank, space=space))

    def name(self, word: str, value: int) -> str:
        """The value as text: a constant of the module, or a literal."""
        if not self.named:
            return str(value)
        self.constants[word] = value
        return word

    def window(self) -> None:
        if self.kind == "pool":
            self.channels = self.rng.choice(CHANNELS)
            self.inputs = self.name("channels", self.channels)
            self.results = self.inputs
            return self.pool(dilated=True)
        groups = self.rng.choice([1, 1, 1, 2, 4])
        self.channels = self.rng.choice([c for c in CHANNELS if c % groups == 0])
        results = self.rng.choice([c for c in CHANNELS if c % groups == 0])
        self.inputs = self.name("in_channels", self.channels)
        text = str(groups)
        if self.kind == "depthwise":
            groups, results, text = self.channels, self.channels, self.inputs
        self.results = self.inputs if self.kind == "depthwise" else self.name("out_channels", results)
        transposed = self.kind == "ConvTranspose"
        kernel = self.each([1, 2, 3, 3, 4] if self.rank == 3 else [1, 2, 3, 3, 4, 5, 7])
        stride, dilation = self.each([1, 1, 2, 3]), self.each([1, 1, 1, 2])
        reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
        padding = [self.rng.randint(0, max(1, r // 2)) for r in reach]
        self.space_behind(transposed, kernel, stride, padding, dilation)
        more = ""
        if transposed and self.rng.random() < 0.5:
            extra = [self.rng.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
            self.space = [n + e for n, e in zip(self.space, extra)]
            more = f", output_padding={tuple(extra)}"
        bias = ", bias=False" if self.rng.random() < 0.3 else ""
        name = f"nn.Conv{'Transpose' if transposed else ''}{self.rank}d"
        self.init.append(f"self.window = {name}({self.inputs}, {self.results}, {tuple(kernel)}, "
                         f"stride={tuple(stride)}, padding={tuple(padding)}, dilation={tuple(dilation)}, "
                         f"groups={text}{more}{bias})")
        self.channels = results
        self.add("self.window({x})")

    def space_behind(self, transposed: bool, kernel: list[int], stride: list[int], padding: list[int],
                     dilation: list[int]) -> None:
        """The sizes of the result. Makes the input larger if a window does not fit."""
        self.first = list(self.space)
        for i, (k, s, p, d) in enumerate(zip(kernel, stride, padding, dilation)):
            if transposed:
                self.space[i] = (self.first[i] - 1) * s - 2 * p + d * (k - 1) + 1
            else:
                self.first[i] = max(self.first[i], d * (k - 1) + 1)
                self.space[i] = (self.first[i] + 2 * p - d * (k - 1) - 1) // s + 1

    def pool(self, dilated: bool = False) -> None:
        kernel = [self.rng.choice([2, 3]) for _ in range(self.rank)]
        stride, padding = self.each([1, 2, 2, 3]), [self.rng.randint(0, k // 2) for k in kernel]
        most = self.rng.random() < 0.5
        dilation = self.each([1, 2]) if dilated and most else [1] * self.rank
        if any(n + 2 * p <= d * (k - 1) for n, k, p, d in zip(self.space, kernel, padding, dilation)):
            return self.add("torch.relu({x})")
        more = f", ceil_mode={self.rng.random() < 0.3}"
        more += f", dilation={tuple(dilation)}" if most else f", count_include_pad={self.rng.random() < 0.5}"
        before = self.space
        if dilated:
            self.first = list(before)
        # Floor mode; ceil mode only makes the result larger.
        self.space = [(n + 2 * p - d * (k - 1) - 1) // s + 1
                      for n, k, s, p, d in zip(before, kernel, stride, padding, dilation)]
        self.add(f"F.{'max' if most else 'avg'}_pool{self.rank}d({{x}}, {tuple(kernel)}, stride={tuple(stride)}, "
                 f"padding={tuple(padding)}{more})")

    def norm(self) -> None:
        kind = self.rng.choice(NORMS)
        elements = 1
        for size in self.space:
            elements *= size
        if self.channels == 1 or elements < 16:
            return self.add("torch.tanh({x})")
        if kind == "layer":
            return self.add("F.layer_norm({x}, {x}.shape[1:])")
        if kind == "group":
            groups = self.rng.choice([g for g in (1, 2, 3, 4, 8) if self.channels % g == 0])
            self.init.append(f"self.norm = nn.GroupNorm({self.name('num_groups', groups)}, {self.results})")
        else:
            self.init.append(f"self.norm = nn.{kind.capitalize()}Norm{self.rank}d({self.results})")
        self.add("self.norm({x})")

    def tail(self, kind: str) -> None:
        if kind == "norm":
            return self.norm()
        if kind == "pool" and min(self.space) > 3:
            return self.pool()
        if kind == "parameter":
            word = f"{'bias' if self.rng.random() < 0.5 else 'scale'}{len(self.init)}"
            channels = "1" if self.channels == 1 else self.results
            self.init.append(f"self.{word} = nn.Parameter(torch.randn({channels}{', 1' * self.rank}))")
            return self.add(f"{{x}} {'+' if word.startswith('b') else '*'} self.{word}")
        choices = {"activation": ACTIVATIONS, "alone": ALONE, "pool": ALONE, "over channels": OVER_CHANNELS,
                   "along channels": ALONG_CHANNELS, "over space": OVER_SPACE}[kind]
        if "channels" in kind and self.channels == 1:
            choices = ACTIVATIONS
        if kind == "over space" and max(self.space) == 1:
            choices = ACTIVATIONS
        self.add(self.rng.choice(choices))
        if choices is OVER_CHANNELS:
            self.channels = 1
        if choices is OVER_SPACE:
            self.space = [1] * self.rank

    def text(self) -> str:
        """The module's file."""
        self.window()
        normed = False
        for _ in range(self.rng.randint(0, 3)):
            kind = self.rng.choice([t for t in TAILS if t != "norm" or not normed])
            normed |= kind == "norm"
            self.tail(kind)
        cast = f".{self.dtype}()" if self.dtype else ""
        names = list(self.constants)
        out = [f'"""Generated module: {self.kind} over {self.rank} axes."""', "", "import torch",
               "import torch.nn as nn", "import torch.nn.functional as F", "", "", "class Model(nn.Module):",
               f"    def __init__(self{''.join(', ' + n for n in names)}):", "        super().__init__()"]
        out += ["        " + line for line in self.init] + ([f"        self{cast}"] if cast else [])
        out += ["", "    def forward(self, x):", f"        t = x{cast}"]
        out += ["        " + line for line in self.lines] + ["        return t", "", ""]
        axes = ["depth", "height", "width"][-self.rank :]
        out += [f"batch_size = {self.batch}"] + [f"{n} = {v}" for n, v in self.constants.items()]
        out += [f"{axis} = {size}" for axis, size in zip(axes, self.first)]
        out += ["", "", "def get_inputs():",
                f"    return [torch.rand(batch_size, {self.inputs}, {', '.join(axes)})]", "", "",
                "def get_init_inputs():", f"    return [{', '.join(names)}]", ""]
        return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description="random modules with convolutions and pooling")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    folder = options.out / "level1"
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(1, options.count + 1):
        module = Module(options.seed, index)
        text = module.text()
        (folder / f"{index}_{module.kind}{module.rank}d.py").write_text(text)


if __name__ == "__main__":
    main()
