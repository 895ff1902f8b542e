#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random modules with one composite operator, as a folder that `cutegen bench` reads.

Each module has one operator that the recipes replace by simpler ones (src/recipes/composites), or a scan or an order
of a rare kind, with random sizes, up to one pointwise operator before it and one behind it. The same seed and count
give the same files.

    composites.py --seed 1 --count 60 --out DIR
    cutegen bench --kernelbench DIR --levels 1 --device sim:h200 --evaluations 1 --no-profile
"""

import argparse
import pathlib
import random

# Operators by the shape of x: rows [N, C], matrices [B, N, N], images [B, C, H, W]. y has the shape of x, i has
# indices of rows, j indices along the last axis with the shape of x.
ROWS = [
    "torch.logcumsumexp({x}, dim={d})", "torch.cummax({x}, dim={d})[1]", "torch.cummin({x}, dim={d})[1]",
    "torch.cumsum(({x} > 0).long(), dim={d})", "torch.sort(({x} * 100).long(), dim=1)[0]",
    "torch.median({x}, dim={d})[0]", "torch.kthvalue({x}, 3, dim={d})[0]", "{x}.unfold(1, 4, 2)",
    "{x}.unfold(0, 3, 3).sum(-1)", "torch.diag_embed({x})", "torch.cdist({x}, y)", "torch.cdist({x}, y, p=1.0)",
    "torch.dist({x}, y)", "F.binary_cross_entropy_with_logits({x}, torch.sigmoid(y))",
    "torch.bucketize({x}, self.bounds)", "torch.histc({x}, bins=8, min=-2.0, max=2.0)",
    "torch.index_add({x}, 0, i, y[i])", "torch.zeros_like({x}).scatter_add(1, j, {x})",
    "torch.slice_scatter({x}, y[:, 2:5], 1, 2, 5)", "torch.select_scatter({x}, y[0], 0, 1)",
    "torch.index_fill({x}, 1, self.columns, 0.5)", "torch.nansum({x}, {d})", "torch.aminmax({x}, dim={d})[0]",
    "torch.logaddexp({x}, y)", "torch.nan_to_num(torch.log({x}))", "F.multi_margin_loss({x}, i % C)",
    "torch.repeat_interleave({x}, 2, dim={d})", "torch.linalg.vector_norm({x} - y, dim={d})",
]
MATRICES = [
    "torch.diagonal({x}, dim1=1, dim2=2)", "torch.diagonal({x}, 1, 1, 2)", "torch.diagonal({x}, -1, 1, 2).sum(-1)",
    "torch.rot90({x}, 1, (1, 2))", "torch.rot90({x}, 3, (1, 2))", "torch.tril({x}) + torch.bmm({x}, y)",
    "torch.cdist({x}, y)", "torch.bmm({x}, torch.triu(y))",
]
IMAGES = [
    "F.unfold({x}, kernel_size=3, padding=1)", "F.unfold({x}, kernel_size=2, stride=2)",
    "F.pad({x}, (2, 1, 1, 2), mode='circular')", "F.max_pool2d({x}, 2, return_indices=True)[1]",
    "F.max_pool2d({x}, 3, 2, 1, return_indices=True)[1]",
    "F.fold({x}.flatten(2).repeat(1, 4, 1), (2 * H, 2 * W), 2, stride=2)",
    "self.circular({x})", "F.grid_sample({x}, self.grid.expand({x}.shape[0], -1, -1, -1), align_corners=True)",
    "F.grid_sample({x}, self.grid.expand({x}.shape[0], -1, -1, -1), padding_mode='border', align_corners=False)",
]
BEFORE = ["{x}", "{x}", "{x} * 0.5", "torch.tanh({x})", "{x} + 1.0"]
BEHIND = ["{x}", "{x}", "{x} * 2", "torch.abs({x})", "{x} - 1"]


def module(seed: int, index: int) -> str:
    rng = random.Random(f"{seed}:{index}")
    kind = rng.choice(["rows"] * 4 + ["matrices", "images", "images"])
    pattern = rng.choice({"rows": ROWS, "matrices": MATRICES, "images": IMAGES}[kind])
    if kind == "rows":
        sizes, shape = {"N": rng.choice([17, 48, 130]), "C": rng.choice([24, 100, 257])}, "N, C"
    elif kind == "matrices":
        sizes, shape = {"B": rng.choice([2, 5]), "N": rng.choice([16, 24, 37])}, "B, N, N"
    else:
        sizes = {"B": rng.choice([1, 2, 3]), "C": rng.choice([4, 6]), "H": rng.choice([8, 12, 15]),
                 "W": rng.choice([10, 16])}
        shape = "B, C, H, W"
    names = ["x"] + [n for n in "yij" if f" {n}" in pattern or f"({n}" in pattern or f"[{n}]" in pattern]
    made = {"i": "torch.randint(0, N, (N,))", "j": "torch.randint(0, C, (N, C))"}
    inputs = ", ".join(made.get(n, f"torch.randn({shape})") for n in names)
    lines = [f"t = {rng.choice(BEFORE).format(x='x')}", f"t = {pattern.format(x='t', d=rng.randrange(2))}",
             f"return {rng.choice(BEHIND).format(x='t')}"]
    parts = ['"""Generated module."""', "import torch", "import torch.nn as nn", "import torch.nn.functional as F",
             "", *(f"{name} = {size}" for name, size in sizes.items()), "", "", "class Model(nn.Module):",
             "    def __init__(self):", "        super().__init__()"]
    if "bounds" in pattern:
        parts.append("        self.register_buffer('bounds', torch.linspace(-2, 2, 9))")
    if "columns" in pattern:
        parts.append("        self.register_buffer('columns', torch.tensor([1, 4, 7]))")
    if "grid" in pattern:
        parts.append("        self.register_buffer('grid', torch.rand(1, 7, 9, 2) * 2.2 - 1.1)")
    if "circular(" in pattern:
        parts.append("        self.circular = nn.Conv2d(C, 8, 3, padding=1, padding_mode='circular')")
    parts += ["", f"    def forward(self, {', '.join(names)}):", *("        " + line for line in lines), "", "",
              "def get_inputs():", f"    return [{inputs}]", "", "", "def get_init_inputs():", "    return []", ""]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description="random modules with composite operators")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    folder = options.out / "level1"
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(1, options.count + 1):
        (folder / f"{index}_composite.py").write_text(module(options.seed, index))


if __name__ == "__main__":
    main()
