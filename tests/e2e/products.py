# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=50
"""Matrix products from end to end: on the tensor cores if the math mode allows it, and with several CTAs that share the
depth of a tile if there are few tiles.

A commit chooses an eighth of Hopper's products, and one of each pair of other programs; with CUTEGEN_ALL_CASES=1 the
test judges all of them.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import harness

TASK = '''import torch
import torch.nn as nn

rows = {rows}
columns = {columns}
depth = {depth}


class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu({product})


def get_inputs():
    return [torch.randn({shape_x}, dtype={dtype}), torch.randn({shape_y}, dtype={dtype})]


def get_init_inputs():
    return []
'''


SUBNORMAL = '''import torch
import torch.nn as nn

rows = 1024
columns = 768
depth = 1024


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(rows, depth) * 3e-39, torch.rand(depth, columns)]


def get_init_inputs():
    return []
'''


BAD = '''import torch
import torch.nn as nn

rows, columns, depth = {rows}, {columns}, {depth}


class Model(nn.Module):
    def forward(self, x, y):
        return {result}


def get_inputs():
    return [torch.randn(rows, depth, dtype={dtype}){large}, torch.rand(depth, columns, dtype={dtype}){small}]


def get_init_inputs():
    return []
'''


def bad(result: str = "x @ y", rows: int = 128, columns: int = 96, depth: int = 64, dtype: str = "torch.float32",
        large: str = "", small: str = "") -> str:
    """A product of operands that are hard for the engines."""
    return BAD.format(result=result, rows=rows, columns=columns, depth=depth, dtype=dtype, large=large, small=small)


# forward() writes the sizes as numbers. The test shapes change them together with the sizes of the input.
NUMBERS = '''import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(256, 768, dtype=torch.bfloat16)

    def forward(self, x):
        return self.l(x).view(16, 200, 3, 4, 64).permute(2, 0, 3, 1, 4)


def get_inputs():
    return [torch.randn(16, 200, 256, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
'''
# Rows of length one. In the family `extremes`, values of many magnitudes stand side by side in them, and at a small
# depth, a sum may consist of products of a large and a tiny value.
COSINES = '''import torch
import torch.nn as nn
import torch.nn.functional as F

rows, columns, depth = 4096, 4096, 512


class Model(nn.Module):
    def forward(self, x, y):
        return F.normalize(x, dim=1) @ F.normalize(y, dim=1).T


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(columns, depth)]


def get_init_inputs():
    return []
'''
SHALLOW = '''[[shapes]]
name = "shallow1"
weight = 0
constants = {rows = 520, columns = 264, depth = 8}
[[shapes]]
name = "shallow"
weight = 0
constants = {rows = 520, columns = 264, depth = 24}
'''


STAGES = '''import torch
import torch.nn as nn

rows, depth, width, columns = 260, 136, 72, 96


class Model(nn.Module):
    def forward(self, x, y, z):
        return torch.logsumexp(torch.sigmoid(x @ y) @ torch.relu(z), 1)


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(depth, width), torch.randn(width, columns)]


def get_init_inputs():
    return []
'''


JOINED = '''import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, x):
        {result}


def get_inputs():
    return [torch.randn(2, 150, {depth}, dtype={dtype})]


def get_init_inputs():
    return []
'''


PACKED = '''import torch
import torch.nn as nn
import torch.nn.functional as F

rows, columns, depth = {rows}, {columns}, {depth}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {buffers}

    def forward(self, x):
        {result}


def get_inputs():
    return [torch.randn(rows, depth, dtype={dtype})]


def get_init_inputs():
    return []
'''


def packed(rows: int, depth: int, weights: str, scales: str, result: str, columns: int = 144,
           dtype: str = "torch.bfloat16", more: str = "") -> str:
    """A product of few rows with weights of 8 or 4 bits."""
    buffers = [f"self.register_buffer('w', {weights})",
               f"self.register_buffer('s', ({scales} / 100 + 0.001).to({dtype}))"]
    return PACKED.format(rows=rows, columns=columns, depth=depth, dtype=dtype, result=result,
                         buffers="\n        ".join(buffers + ([more] if more else [])))


def joined(layers: str, result: str, depth: int, dtype: str) -> str:
    """A task whose outputs need several products of one tensor."""
    return JOINED.format(layers=layers.replace("LINEAR", f"nn.Linear({depth}"), result=result, depth=depth, dtype=dtype)


def product(sizes: dict[str, int], layout: str = "kn", mode: str = "fp32",
            dtype: str = "torch.float32") -> tuple[str, str]:
    """A task and its side file. A layout names the contiguous axis of each factor."""
    x, shape_x = ("x", "rows, depth") if layout[0] == "k" else ("x.T", "depth, rows")
    y, shape_y = ("y", "depth, columns") if layout[1] == "n" else ("y.T", "columns, depth")
    text = TASK.format(product=f"{x} @ {y}", shape_x=shape_x, shape_y=shape_y, dtype=dtype, **sizes)
    return text, f'math_mode = "{mode}"\n'


LARGE = {"rows": 1024, "columns": 768, "depth": 1024}
ODD = {"rows": 1021, "columns": 771, "depth": 1027}
SHORT = {"rows": 520, "columns": 264, "depth": 1032}
BF16, FP16 = {"dtype": "torch.bfloat16", "mode": "bf16"}, {"dtype": "torch.float16", "mode": "fp16"}
# On Hopper's tensor cores, in every layout: three tf32 products for floats, one in TF32, products
# of 16 bits.
WGMMA: dict[str, harness.TaskText] = {
    **{f"three_{layout}": product(LARGE, layout) for layout in harness.some("kn", "mk", "kk", "mn", most=2)},
    **{f"tf32_{layout}": product(ODD, layout, "tf32") for layout in harness.some("kk", "mn", "kn", "mk", most=2)},
    **{f"{kind['mode']}_{layout}": product(SHORT, layout, **kind) for layout, kind in harness.some(
        ("kn", BF16), ("mn", FP16), ("kk", FP16), ("mk", BF16), most=2)},
    "subnormal": SUBNORMAL,
}
# One kernel for several products: parts with separate outputs, and partners that share a tile. Odd
# sizes cannot use TMA.
JOINED_TASKS: dict[str, harness.TaskText] = {
    "parts": joined("self.l = LINEAR, 384, dtype=torch.bfloat16)", "return self.l(x).chunk(3, -1)", 128,
                    "torch.bfloat16"),
    "heads": joined("self.l = LINEAR, 320)", "q, k, v = self.l(x).split([192, 64, 64], -1)\n"
                    "        return q.view(2, -1, 6, 32).transpose(1, 2), k, torch.relu(v)", 128, "torch.float32"),
    "gate": joined("self.g, self.u = LINEAR, 77, dtype=torch.bfloat16), LINEAR, 77, dtype=torch.bfloat16)",
                   "return F.silu(self.g(x)) * self.u(x)", 131, "torch.bfloat16"),
    "float_gate": joined("self.g, self.u = LINEAR, 77), LINEAR, 77)", "return F.silu(self.g(x)) * self.u(x)", 131,
                         "torch.float32"),
    "float_cell": joined("self.l = LINEAR, 132)", "i, f, g, o = self.l(x).sigmoid().chunk(4, -1)\n"
                         "        return o * torch.tanh(i * g + f)", 67, "torch.float32"),
    "packed": joined("self.l = LINEAR, 272, dtype=torch.float16)", "return F.glu(self.l(x), -1)", 136, "torch.float16"),
}
INT8 = "torch.randint(-128, 128, (columns, depth), dtype=torch.int8)"
UINT8 = "torch.randint(0, 256, (columns, {}), dtype=torch.uint8)"
FP8 = "torch.randn(columns, depth).to(torch.float8_e4m3fn)"
BY_GROUP = "return F.linear(x, ({}.to(x.dtype) * self.s[:, :, None]).view(columns, depth))"
FIRST_LOW = "torch.stack([self.w & 15, self.w >> 4], -1).view(columns, depth // {0}, {0})"
FIRST_HIGH = "torch.stack([self.w >> 4, self.w & 15], -1).view(columns, depth // {0}, {0})"
# Each of these is one kernel that reads the packed weights.
PACKED_TASKS: dict[str, harness.TaskText] = {
    "int8_rows": packed(16, 520, INT8, "torch.rand(columns, 1)",
                        "return F.gelu(F.linear(x, self.w.to(x.dtype) * self.s))"),
    "int8_groups": packed(5, 512, INT8, "torch.rand(columns, depth // 64)",
                          BY_GROUP.format("self.w.view(columns, depth // 64, 64)"), dtype="torch.float16"),
    "int8_one": packed(1, 2048, INT8, "torch.rand(columns)", "return F.linear(x, self.w.to(x.dtype)) * self.s"),
    "uint8_zeros": packed(33, 384, UINT8.format("depth"), "torch.rand(columns, 1)",
                          "return F.linear(x, (self.w.to(x.dtype) - 128) * self.s)"),
    "fp8_blocks": packed(64, 512, FP8, "torch.rand(columns // 16, depth // 128)",
                         "w = self.w.view(columns // 16, 16, -1, 128).to(torch.float32) * self.s[:, None, :, None]\n"
                         "        return F.linear(x, w.view(columns, depth).to(x.dtype))"),
    "fp8_odd": packed(100, 333, FP8, "torch.rand(columns, 1)", "return torch.relu(x @ (self.w.to(x.dtype) * self.s).T)",
                      columns=77, dtype="torch.float16"),
    "int4_groups": packed(16, 1024, UINT8.format("depth // 2"), "torch.rand(columns, depth // 128)",
                          BY_GROUP.format(f"({FIRST_LOW.format(128)}.to(torch.int8) - 8)")),
    "int4_zeros": packed(8, 256, UINT8.format("depth // 2"), "torch.rand(columns, depth // 32)",
                         BY_GROUP.format(f"({FIRST_HIGH.format(32)}.to(x.dtype) - self.z[:, :, None])"),
                         dtype="torch.float16",
                         more="self.register_buffer('z', torch.randint(0, 16, (columns, depth // 32), "
                              "dtype=torch.int8))"),
}
# These unpack the weights first, because they have many rows.
UNPACKED_TASKS: dict[str, harness.TaskText] = {
    "int4_rows": packed(192, 256, UINT8.format("depth // 2"), "torch.rand(columns, depth // 32)",
                        BY_GROUP.format(f"({FIRST_LOW.format(32)}.to(x.dtype) - 8)")),
}
# No depth, views that TMA cannot read, values near the largest float, infinities.
BAD_INPUT: dict[str, harness.TaskText] = {
    "no_depth": bad(depth=0),
    "no_depth_bf16": bad("torch.relu(x @ y)", depth=0, dtype="torch.bfloat16"),
    "depth_1": bad(depth=1),
    "depth_1_bf16": bad(depth=1, dtype="torch.bfloat16"),
    "unaligned": bad("x[:, 1:] @ y[1:]", depth=257),
    "unaligned_bf16": bad("x[:, 1:] @ y[1:]", depth=257, dtype="torch.bfloat16"),
    "strided": bad("x[:, ::2] @ y[::2]", depth=256),
    "largest": bad(large=" * 1e38", small=" * 1e-3", rows=256),
    "infinite": bad("(x / (x > 2.5).logical_not().float()) @ y", rows=256),
}
IN_ONE_KERNEL = ("parts", "gate", "float_gate")  # the others have further stages at these sizes
# A deep product is split and its parts combined; products, computed factors and reductions are stages of one program.
OTHERS: dict[str, harness.TaskText] = {"deep": product({"rows": 64, "columns": 96, "depth": 4096}), "stages": STAGES}
BEFORE_HOPPER = {"tf32": product({"rows": 256, "columns": 192, "depth": 512}, mode="tf32"),
                 "fp32": product({"rows": 512, "columns": 512, "depth": 512})}


def multiplied_by(row: harness.SolvedTask) -> set[str]:
    """The matrix instructions of a program's machine code."""
    return {kind for kernel in row.verdict["audit"]["kernels"] for kind in kernel["code"]["mma"]}


class Products(harness.Case):
    def correct(self, tasks: Mapping[str, harness.TaskText], **settings: Any) -> dict[str, harness.SolvedTask]:
        solved = self.solve(tasks, **settings)
        for name, row in solved.items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
        return solved

    def test_on_hopper(self) -> None:
        wgmma = harness.in_turn(WGMMA, 8)
        solved = self.correct({**wgmma, **harness.in_turn(OTHERS, 2)})
        for name in wgmma:
            with self.subTest(name):
                row = solved[name]
                self.assertEqual(row.plan["arch"], ["sm_90a"])
                self.assertTrue(any(kind.startswith("HGMMA") for kind in multiplied_by(row)), multiplied_by(row))
                if "16" in name:
                    self.assertEqual(sorted(row.plan["tensor_maps"]), ["map_a", "map_b"])
        if "deep" in solved:
            self.assertEqual(solved["deep"].kernels, ["matmul", "combine"])
            self.assertEqual(solved["deep"].plan["scratch"][0]["name"], "partial")
        if "stages" in solved:
            kinds = sorted(kernel.split("_")[0] for kernel in solved["stages"].kernels)
            self.assertEqual(kinds, ["elementwise", "matmul", "matmul", "reduction"])

    def test_joined(self) -> None:
        for name, row in self.correct(harness.in_turn(JOINED_TASKS, 2)).items():
            with self.subTest(name):
                if name in IN_ONE_KERNEL:
                    self.assertEqual(row.kernels, ["matmul"])
                    self.assertEqual(row.plan.get("scratch", []), [])

    def test_packed_weights(self) -> None:
        tasks = harness.in_turn(PACKED_TASKS, 4)
        solved = self.correct({**tasks, **UNPACKED_TASKS})
        for name in tasks:
            with self.subTest(name):
                self.assertEqual(solved[name].kernels[0], "matmul")
                self.assertIn("StreamGemm", solved[name].source)

    def test_bad_input(self) -> None:
        self.correct(harness.in_turn(BAD_INPUT, 5))

    def test_pairs_of_halves_at_a_small_depth(self) -> None:
        row = self.correct({"cosines": (COSINES, SHALLOW)})["cosines"]
        self.assertIn("split_3_halves", row.kernels)

    def test_sizes_that_forward_writes_as_numbers(self) -> None:
        verdict = self.correct({"numbers": NUMBERS})["numbers"].verdict
        self.assertGreater(verdict["sets_judged"], 10, "several test shapes")

    def test_before_hopper(self) -> None:
        tasks = harness.in_turn(BEFORE_HOPPER, 2)
        solved = self.correct(tasks, device="sim:a100", evaluations=2)  # the second is on tensor cores
        if "tf32" in solved:
            self.assertEqual(multiplied_by(solved["tf32"]), {"HMMA.1688.F32.TF32"})
        if "fp32" in solved:
            self.assertEqual(solved["fp32"].plan["arch"], ["sm_80+"])


if __name__ == "__main__":
    harness.main()
