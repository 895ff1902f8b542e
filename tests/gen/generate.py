#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random task files from the grammar of the recipe families.

    chain      pointwise operators over tensors that broadcast
    reduction  pointwise work, a reduction along one axis, pointwise work on its result
    matmul     a matrix product in one of its layouts, pointwise work on its result
    axes       reductions over any axes, positions, norms of layers, groups and instances, chains
               of reductions over different axes
    loss       losses of two or three tensors, reduced to one number
    slice      pointwise work on parts of a tensor: halves, all but one line, single lines, sometimes reduced
               or joined
    scan       pointwise work, cumulative sums, products, maxima or minima along one axis, from either
               end or exclusive, sometimes reduced
    take       rows and elements that an index tensor names, with pointwise work, norms and reductions around
    serve      rows in order, quantised rows and blocks, counts

The same seed and count give the same files. Sizes are module constants, so that tasks can be
shrunk. Operators are kept where they are smooth and do not overflow: what a task tests is the
kernel, not the edge of a domain.

    generate.py --seed 1 --count 50 --out tasks/
"""
from __future__ import annotations

import argparse
import pathlib
import random

UNARY = [
    "torch.relu({x})", "torch.sigmoid({x})", "torch.tanh({x})", "F.gelu({x})",
    "F.gelu({x}, approximate='tanh')", "F.silu({x})", "F.elu({x}, alpha={a})", "F.selu({x})",
    "F.celu({x}, alpha={a})", "F.softplus({x})", "F.softplus({x}, beta={a}, threshold=15.0)",
    "F.hardtanh({x}, -{a}, {a})", "F.hardsigmoid({x})", "F.hardswish({x})", "F.relu6({x})",
    "F.leaky_relu({x}, negative_slope={s})", "F.mish({x})", "F.logsigmoid({x})", "F.softsign({x})",
    "{x} / (1 + torch.abs({x}))", "torch.abs({x})", "-{x}", "torch.square(torch.tanh({x}))",
    "torch.pow(torch.tanh({x}), 3)", "{x} ** 2 * {s}", "torch.sqrt(torch.abs({x}) + {a})",
    "torch.rsqrt(torch.abs({x}) + {a})", "torch.log(torch.abs({x}) + {a})", "torch.log1p({x} * {x})",
    "torch.exp(torch.tanh({x}))", "torch.expm1(torch.sigmoid({x}))", "torch.erf({x})",
    "torch.sin({x})", "torch.cos({x})", "torch.reciprocal(torch.abs({x}) + {a})",
    "torch.clamp({x}, -{a}, {a})", "torch.clamp_min({x}, -{s})", "torch.clamp({x}, max={a})",
    "torch.where({x} > 0, {x}, {s} * {x})", "{x} * torch.sigmoid({a} * {x})",
]
SCALAR = ["{x} + {a}", "{x} * {a}", "{x} - {s}", "{a} - {x}", "{x} / {a}", "{s} * {x} + {a}"]
BINARY = [
    "{x} + {y}", "{x} * {y}", "{x} - {y}", "torch.add({x}, {y}, alpha={a})", "{x} / (torch.abs({y}) + {a})",
    "torch.maximum({x}, {y})", "torch.minimum({x}, {y})", "torch.where({x} > {y}, {x}, {y})",
    "torch.lerp({x}, {y}, {s})",
]
# Results of the input's shape, along `dim`.
NORMAL = [
    "torch.softmax({x}, dim={d})", "torch.log_softmax({x}, dim={d})", "F.softmin({x}, dim={d})",
    "{x} / torch.sqrt(torch.mean({x} ** 2, dim={d}, keepdim=True) + 1e-5)",
    "{x} * torch.rsqrt({x}.pow(2).mean(dim={d}, keepdim=True) + 1e-6)",
    "{x} / (torch.sum(torch.abs({x}), dim={d}, keepdim=True) + {a})",
    "{x} - torch.mean({x}, dim={d}, keepdim=True)", "{x} - torch.amax({x}, dim={d}, keepdim=True)",
    "F.normalize({x}, p=2, dim={d})",
]
# Results without the axis, or with size 1 along it.
REDUCE = [
    "torch.sum({x}, dim={d}, keepdim={k})", "torch.mean({x}, dim={d}, keepdim={k})",
    "torch.max({x}, dim={d}, keepdim={k})[0]", "torch.amax({x}, dim={d}, keepdim={k})",
    "torch.amin({x}, dim={d}, keepdim={k})", "torch.logsumexp({x}, dim={d}, keepdim={k})",
    "torch.norm({x}, p=2, dim={d}, keepdim={k})", "torch.norm({x}, p=1, dim={d}, keepdim={k})",
]
# Sizes by rank, so that a task has about one to a few million elements.
SIZES = {
    1: [1 << 20, 1000003, 3 << 20],
    2: [256, 512, 1000, 1024, 2048, 4095],
    3: [16, 48, 100, 128, 256, 255],
    4: [8, 16, 31, 32, 64],
}
AXES = ["batch", "channels", "height", "width"]
# Several axes {ds}, one axis {d}, another axis {o}.
SEVERAL = [
    "torch.sum({x}, dim={ds}, keepdim={k})", "torch.mean({x}, dim={ds}, keepdim={k})",
    "torch.amax({x}, dim={ds}, keepdim={k})", "torch.amin({x}, dim={ds}, keepdim={k})",
    "torch.logsumexp({x}, dim={ds}, keepdim={k})", "torch.norm({x}, p=2, dim={ds}, keepdim={k})",
    "torch.linalg.vector_norm({x}, ord=1, dim={ds}, keepdim={k})",
    "torch.linalg.vector_norm({x}, ord=3, dim={ds})", "torch.var({x}, dim={ds}, keepdim={k})",
    "torch.std({x}, dim={ds}, correction=0)", "torch.norm({x})", "torch.sum({x})", "torch.mean({x})",
    "torch.linalg.vector_norm({x}, ord=float('inf'), dim={ds}, keepdim={k})",
    "torch.prod(torch.sigmoid({x}) + 0.5, dim={d})",
]
SHAPED = [
    "{x} / torch.norm({x}, p='fro')", "F.layer_norm({x}, {x}.shape[1:])",
    "F.layer_norm({x}, {x}.shape[-1:], eps=1e-3)", "{x} - torch.mean({x}, dim={ds}, keepdim=True)",
    "F.normalize({x}, p=2, dim={d})", "torch.softmax({x}, dim={d})",
]
CHANNELS = ["F.instance_norm({x})", "F.group_norm({x}, 1)", "F.group_norm({x}, 1, eps=1e-3)"]
CHAINED = [
    "torch.softmax({x}, dim={d}).sum(dim={o})", "torch.amax({x}, dim={d}).mean()",
    "torch.norm({x}, dim={d}, keepdim=True).amax(dim={o}, keepdim=True) + {x}",
    "torch.logsumexp({x}, dim={d}).sum()",
    "torch.sum({x}, dim={d}, keepdim=True) * torch.mean({x}, dim={o}, keepdim=True)",
]
# Positions are compared exactly, so the operators before them must not round.
EXACT = ["{x}", "-{x}", "torch.abs({x})", "torch.relu({x})"]
PLACES = ["torch.argmax({x}, dim={d}, keepdim={k})", "torch.argmin({x}, dim={d}, keepdim={k})",
          "torch.max({x}, dim={d}, keepdim={k})[1]", "torch.argmax({x})"]
LOSSES = [
    "F.mse_loss({x}, y)", "F.mse_loss({x}, y, reduction='sum')", "F.smooth_l1_loss({x}, y, beta={a})",
    "F.huber_loss({x}, y, delta={a})", "F.l1_loss({x}, y)", "F.soft_margin_loss({x}, torch.sign(y))",
    "F.kl_div(F.log_softmax({x}, dim=-1), F.softmax(y, dim=-1), reduction='sum')",
    "1 - F.cosine_similarity({x}, y, dim=-1).mean()", "torch.mean(torch.clamp({a} - {x} * y, min=0))",
    "F.binary_cross_entropy(torch.sigmoid({x}), torch.sigmoid(y))",
    "F.triplet_margin_loss({x}, y, z, margin={a})", "torch.mean(torch.sum(({x} - y) ** 2, dim=-1))",
    "F.nll_loss(F.log_softmax({x}, dim=1), torch.argmax(y, dim=1))",
]
SCANS = [
    "torch.cumsum({x}, dim={d})", "torch.cumsum({x}.flip({d}), dim={d}).flip({d})",
    "torch.cumprod(1 + 0.01 * torch.tanh({x}), dim={d})", "torch.cummax({x}, dim={d})[0]",
    "torch.cummin({x}, dim={d})[0]", "torch.cumsum({x}, dim={d}) - {x}", "torch.cumsum({x} * (y > 0), dim={d})",
    "torch.cat((torch.zeros_like({x}.select({d}, 0).unsqueeze({d})), "
    "torch.cumsum({x}.narrow({d}, 0, {x}.shape[{d}] - 1), dim={d})), dim={d})",
]
SLICES = [
    "F.silu({x}.chunk(2, dim={d})[0]) * {x}.chunk(2, dim={d})[1]", "F.glu({x}, dim={d})",
    "{x}.narrow({d}, 1, {x}.shape[{d}] - 1) - {x}.narrow({d}, 0, {x}.shape[{d}] - 1)",
    "torch.split({x}, {x}.shape[{d}] // 2, dim={d})[1] * {a}", "{x}.narrow({d}, 3, {x}.shape[{d}] - 5) + {s}",
    "torch.cat([-{x}.chunk(2, dim={d})[1], {x}.chunk(2, dim={d})[0]], dim={d}) * {a} + {x}",
    "torch.cat([torch.relu({x}), {x}.narrow({d}, 0, 3)], dim={d})", "torch.stack([{x}, {x} * {s}], dim={d})",
    "{x}.select({d}, 0) + {x}.select({d}, -1)", "torch.maximum({x}.unbind({d})[1], {x}.select({d}, 2))",
]


# By indices `i` along axis {d}, and `j` for each element of the result.
TAKES = [
    "{x}.index_select({d}, i)", "{x}[i]", "torch.gather({x}, {d}, j)", "torch.take_along_dim({x}, j, dim={d})",
    "{x}.index_select({d}, i) * y.index_select({d}, i)", "{x}[i] + torch.relu({x})[i] * {a}",
    "F.embedding(i, {x}.flatten(1))", "torch.log_softmax({x}, dim=-1)[i]",
]
AFTER_TAKES = ["torch.softmax({x}, dim=-1)", "F.rms_norm({x}, {x}.shape[-1:])", "F.layer_norm({x}, {x}.shape[-1:])",
               "torch.sum({x}, dim=0)", "torch.amax({x}, dim=-1)", "torch.cumsum({x}, dim=-1)", "F.silu({x})",
               "{x} * {a}"]
# Rounding may change integers, so the operators before them must be exact.
SERVES = [
    "torch.topk({x}, 7, dim=-1)", "torch.topk({x}, 16, dim=-1, largest=False)", "torch.sort({x}, dim=-1, stable=True)",
    "torch.softmax(torch.topk({x}, 12, dim=-1)[0], dim=-1)", "torch.argsort({x}, dim=-1, descending=True, stable=True)",
    "({x} > {s}).sum({d})", "({x} > 2 + {a}).any({d})", "({x} > -3).all({d})",
    "torch.count_nonzero(torch.relu({x}), {d})",
    "({x} / ({x}.abs().amax(-1, keepdim=True) / 127)).round().to(torch.int8)",
    "({x} * (448 / {x}.abs().amax(-1, keepdim=True).clamp(min=1e-4))).clamp(-448, 448).to(torch.float8_e4m3fn)",
]


# Products: inputs with their axes, parameters with theirs, the product, axes of the result.
PRODUCTS = [
    ({"x": "M K", "y": "K N"}, {}, "x @ y", "M N"),
    ({"x": "K M", "y": "K N"}, {}, "x.T @ y", "M N"),
    ({"x": "M K", "y": "N K"}, {}, "x @ y.T", "M N"),
    ({"x": "K M", "y": "N K"}, {}, "x.T @ y.T", "M N"),
    ({"x": "M K", "y": "K N"}, {}, "(x @ y).T", "N M"),
    ({"x": "batch M K", "y": "batch K N"}, {}, "torch.bmm(x, y)", "batch M N"),
    ({"x": "batch K M", "y": "batch K N"}, {}, "torch.bmm(x.transpose(1, 2), y)", "batch M N"),
    ({"x": "batch M K", "y": "K N"}, {}, "torch.matmul(x, y)", "batch M N"),
    ({"x": "M K", "y": "batch K N"}, {}, "torch.matmul(x, y)", "batch M N"),
    ({"x": "batch heads M K", "y": "batch heads N K"}, {}, "x @ y.transpose(-2, -1)", "batch heads M N"),
    ({"x": "batch heads M K", "y": "K N"}, {}, "torch.einsum('bhmk,kn->bhmn', x, y)", "batch heads M N"),
    ({"x": "M K"}, {"w": "N K", "c": "N"}, "F.linear(x, self.w, self.c)", "M N"),
    ({"x": "batch M K"}, {"w": "N K", "c": "N"}, "F.linear(x, self.w, self.c)", "batch M N"),
    ({"x": "batch M K"}, {"w": "N K"}, "F.linear(x, self.w)", "batch M N"),
    ({"x": "M K", "y": "K N", "z": "M N"}, {}, "torch.addmm(z, x, y, beta={s}, alpha={a})", "M N"),
    ({"x": "M M", "y": "M M"}, {}, "torch.triu(x @ y)", "M M"),
    ({"x": "M M", "y": "M M"}, {}, "torch.tril(x @ y, -1)", "M M"),
    ({"x": "M", "y": "M N"}, {}, "torch.diag(x) @ y", "M N"),
    ({"x": "M K", "y": "K"}, {}, "x @ y", "M"),
]
EXTENTS = {"batch": [4, 16, 12], "heads": [8, 6], "M": [512, 1024, 1000, 2047], "N": [768, 1024, 999],
           "K": [512, 1024, 2048, 1023, 64]}


class Module:
    def __init__(self, seed: int, index: int, family: str = "all") -> None:
        self.rng = random.Random(f"{seed}:{index}")
        self.index, self.family, self.inputs = index, family, ["x"]
        self.shapes: dict[str, list[str]] = {}  # of inputs, by name
        self.made: dict[str, str] = {}  # inputs that are no normal numbers
        self.lines: list[str] = []
        self.parameters: list[tuple[str, list[str]]] = []
        self.rank = self.rng.choice([1, 2, 2, 3, 3, 4])
        self.axes = AXES[: self.rank] if self.rank > 1 else ["size"]
        self.sizes = [self.rng.choice(SIZES[self.rank]) for _ in self.axes]

    def number(self) -> dict[str, float]:
        """Two random scalars: one of about one, and a small one."""
        return {"a": self.rng.choice([0.5, 0.75, 1.25, 1.5, 2.0]),
                "s": self.rng.choice([0.01, 0.1, 0.2, 0.25, 0.3])}

    def add(self, pattern: str, **names: object) -> None:
        self.lines.append("t = " + pattern.format(**names, **self.number()))

    def other(self) -> str:
        """A second operand: an input, or a parameter over some axes."""
        kind = self.rng.choice(["input", "last", "axis", "scalar", "inner", "x"])
        if kind == "x":
            return "x"
        if kind == "input":
            name = "yz"[min(len(self.inputs) - 1, 1)]
            if name not in self.inputs:
                self.inputs.append(name)
            return name
        axis = self.rng.randrange(self.rank)
        shape = {"last": self.axes[-1:], "scalar": ["1"], "inner": self.axes[axis:],
                 "axis": [self.axes[axis]] + ["1"] * (self.rank - axis - 1)}[kind]
        name = f"w{len(self.parameters)}"
        self.parameters.append((name, shape))
        return f"self.{name}"

    def pointwise(self, count: int, binary: bool = True) -> None:
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.25 and binary:
                self.add(self.rng.choice(BINARY), x="t", y=self.other())
            elif kind < 0.4:
                self.add(self.rng.choice(SCALAR), x="t")
            else:
                self.add(self.rng.choice(UNARY), x="t")

    def chain(self) -> None:
        self.pointwise(self.rng.randint(1, 8))
        if not any("y" in line or "self." in line for line in self.lines) and self.rng.random() < 0.5:
            self.add(self.rng.choice(BINARY), x="t", y=self.other())

    def reduction(self) -> None:
        self.pointwise(self.rng.randint(0, 3))
        axis = self.rng.randrange(self.rank)
        names = {"x": "t", "d": self.rng.choice([axis, axis - self.rank])}
        if self.rng.random() < 0.5:
            self.add(self.rng.choice(NORMAL), **names)
            self.pointwise(self.rng.randint(0, 3))
        else:
            self.add(self.rng.choice(REDUCE), k=self.rng.choice([True, False]), **names)
            self.pointwise(self.rng.randint(0, 2), binary=False)

    def matmul(self) -> None:
        """The result of the product replaces x; pointwise work over its axes follows."""
        inputs, parameters, product, axes = self.rng.choice(PRODUCTS)
        used = sorted({axis for shape in [*inputs.values(), *parameters.values()] for axis in shape.split()})
        self.axes, self.sizes = used, [self.rng.choice(EXTENTS[axis]) for axis in used]
        self.shapes = {name: shape.split() for name, shape in inputs.items()}
        self.inputs = list(inputs)
        self.parameters = [(name, shape.split()) for name, shape in parameters.items()]
        self.add(product)
        result = axes.split()
        self.rank = len(result)
        for _ in range(self.rng.randint(0, 3)):
            kind = self.rng.random()
            if kind < 0.3:
                name = f"v{len(self.parameters)}"
                self.parameters.append((name, self.rng.choice([result[-1:], result[-1:], ["1"]])))
                self.add(self.rng.choice(BINARY), x="t", y=f"self.{name}")
            elif kind < 0.45 and "r" not in self.inputs:
                self.inputs.append("r")
                self.shapes["r"] = result
                self.add(self.rng.choice(BINARY), x="t", y="r")
            elif kind < 0.6:
                self.add(self.rng.choice(SCALAR), x="t")
            else:
                self.add(self.rng.choice(UNARY), x="t")

    def redraw(self, ranks: list[int]) -> None:
        """Another rank than the one drawn, from `ranks`."""
        self.rank = self.rng.choice(ranks)
        self.axes = AXES[: self.rank]
        self.sizes = [self.rng.choice(SIZES[self.rank]) for _ in self.axes]

    def several(self) -> dict[str, object]:
        """Names for patterns: one axis, another one, a few together."""
        d, o = self.rng.sample(range(self.rank), 2)
        ds = tuple(sorted(self.rng.sample(range(self.rank), self.rng.randint(1, self.rank))))
        return {"x": "t", "d": d, "o": min(o, self.rank - 2), "ds": ds,
                "k": self.rng.choice([True, False])}

    def axes_family(self) -> None:
        self.redraw([2, 3, 3, 4])
        kind = self.rng.choice(["several", "several", "shaped", "channels", "chained", "place"])
        if kind == "place":
            self.add(self.rng.choice(EXACT), x="t")
            return self.add(self.rng.choice(PLACES), **self.several())
        self.pointwise(self.rng.randint(0, 2))
        choices = {"several": SEVERAL, "shaped": SHAPED, "chained": CHAINED,
                   "channels": CHANNELS if self.rank > 2 else SHAPED}[kind]
        self.add(self.rng.choice(choices), **self.several())
        self.pointwise(self.rng.randint(0, 2), binary=kind in ("shaped", "channels"))

    def loss(self) -> None:
        self.redraw([2, 2, 3])
        self.pointwise(self.rng.randint(0, 1), binary=False)
        pattern = self.rng.choice(LOSSES)
        self.inputs = ["x", "y", "z"] if "z" in pattern else ["x", "y"]
        self.add(pattern, x="t")

    def slice(self) -> None:
        self.sizes = [max(8, size - size % 2) for size in self.sizes]  # halves have one size
        self.pointwise(self.rng.randint(0, 2), binary=False)
        axis = self.rng.randrange(self.rank)
        pattern = self.rng.choice(SLICES[:-1] if self.rank == 1 else SLICES)
        self.add(pattern, x="t", d=axis)
        parts = "select" in pattern or "cat(" in pattern or "stack" in pattern
        if self.rng.random() < 0.3 and self.rank > 1 and not parts:
            self.add(self.rng.choice(REDUCE), x="t", d=self.rng.randrange(self.rank), k=self.rng.choice([True, False]))
        else:
            self.add(self.rng.choice(UNARY), x="t")

    def scan(self) -> None:
        self.pointwise(self.rng.randint(0, 2))
        axis = self.rng.randrange(self.rank)
        pattern = self.rng.choice(SCANS)
        if "y" in pattern and "y" not in self.inputs:
            self.inputs.insert(1, "y")
        self.add(pattern, x="t", d=self.rng.choice([axis, axis - self.rank]))
        if self.rng.random() < 0.3:
            self.add(self.rng.choice(REDUCE), x="t", d=axis, k=self.rng.choice([True, False]))
        else:
            self.add(self.rng.choice(SCALAR), x="t")

    def take(self) -> None:
        self.redraw([2, 2, 3])
        axis = self.rng.randrange(self.rank)
        pattern = self.rng.choice(TAKES)
        if "[i" in pattern or "embedding" in pattern:
            axis = 0
        self.pointwise(self.rng.randint(0, 2), binary=False)
        taken = self.rng.choice([24, 100, 300, 301])
        self.made["i"] = f"torch.randint(0, {self.axes[axis]}, (taken,))"
        shape = ", ".join("taken" if k == axis else name for k, name in enumerate(self.axes))
        self.made["j"] = f"torch.randint(0, {self.axes[axis]}, ({shape}))"
        self.inputs += [name for name, words in (("y", ("y.",)), ("i", ("i)", "[i]", "(i,")), ("j", ("j)", "j,")))
                        if any(word in pattern for word in words)]
        self.axes, self.sizes = [*self.axes, "taken"], [*self.sizes, taken]
        self.shapes = {"x": self.axes[:-1], "y": self.axes[:-1]}
        self.add(pattern, x="t", d=axis)
        self.add(self.rng.choice(AFTER_TAKES), x="t")

    def serve(self) -> None:
        self.redraw([2, 3])
        self.add(self.rng.choice(EXACT[:2]), x="t")
        self.add(self.rng.choice(SERVES), x="t", d=self.rng.randrange(self.rank))

    def text(self) -> tuple[str, str]:
        family = self.rng.choice(["chain", "reduction"]) if self.family == "all" else self.family
        {"axes": self.axes_family}.get(family, getattr(self, family))()
        out = [f'"""Generated task {self.index}: {family}, rank {self.rank}."""', "",
               "import torch", "import torch.nn as nn", "import torch.nn.functional as F", "",
               "", "class Model(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        for name, shape in self.parameters:
            out.append(f"        self.{name} = nn.Parameter(torch.randn({', '.join(shape)}))")
        out += ["", f"    def forward(self, {', '.join(self.inputs)}):", "        t = x"]
        out += ["        " + line for line in self.lines] + ["        return t", "", ""]
        out += [f"{axis} = {size}" for axis, size in zip(self.axes, self.sizes)]
        made = ", ".join(self.made.get(n, f"torch.randn({', '.join(self.shapes.get(n, self.axes))})")
                         for n in self.inputs)
        out += ["", "", "def get_inputs():", f"    return [{made}]", "", "",
                "def get_init_inputs():", "    return []", ""]
        return family, "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description="random task files for the recipes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--family", default="all",
                        choices=["all", "chain", "reduction", "matmul", "axes", "loss", "slice", "scan",
                                 "take", "serve"])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for index in range(options.count):
        family, text = Module(options.seed, index, options.family).text()
        path = options.out / f"gen_{options.seed}_{index:03d}_{family}.py"
        path.write_text(text)
        print(path)


if __name__ == "__main__":
    main()
