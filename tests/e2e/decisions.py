# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=400 cost=10
"""Rounding may turn a decision on computed values. The evaluator must accept both outcomes of such decisions only.

The tests ask the worker for sets of inputs and judge results with a simple form of the evaluator's rule: 32 times the
sensitivity, the native error and the rounding of an element.
"""
from __future__ import annotations

import subprocess
import unittest

import harness

COMMON = '''
import mmap
import sys
import torch
from cutegen_worker import values

DTYPES = {name: dtype for dtype, name in values.DTYPES.items()}


def drawn(source, family, seed, dtype="f32"):
    request = {"source": source, "file": "task.py", "constants": {}, "train_mode": False, "math_mode": "fp32",
               "math_mode_asked": False, "family": family, "shape": "s0", "seed": seed, "outputs": ["out"],
               "dtypes": [dtype], "mutated": [], "returns": []}
    reply, fd = values.make_set(request)
    memory, found = mmap.mmap(fd, reply["bytes"]), {}
    for slot in reply["slots"]:
        raw = bytearray(memory[slot["offset"]:slot["offset"] + slot["bytes"]])
        found[slot["name"], slot["part"]] = torch.frombuffer(raw, dtype=DTYPES[slot["dtype"]]).view(slot["shape"])
    return found


def wrong(found, result):
    truth, result = found["out", "truth"], result.double()
    sensitivity = found.get(("out", "sensitivity"), torch.zeros_like(truth)).abs()
    unit = torch.maximum(sensitivity, 2.0**-23 * torch.nan_to_num(truth).abs())
    if ("out", "native") in found:
        unit = torch.maximum(unit, (found["out", "native"].double() - truth).abs().nan_to_num(0, 0, 0))
    near = (result - truth).abs() <= 32 * unit + 2.0**-126
    return int((~near & ~(result == truth) & ~torch.isnan(truth) & ~torch.isinf(sensitivity)).sum())


MODULE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {names}):
        {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
'''

TOP_P = COMMON + '''
source = MODULE.format(names="x", inputs="3 * torch.randn(3, 997)", forward="""
        p = torch.softmax(x, -1)
        ordered, at = torch.sort(p, dim=-1, descending=True)
        kept = ordered.masked_fill(torch.cumsum(ordered, -1) - ordered > 0.9, 0.0)
        return torch.zeros_like(p).scatter(-1, at, kept / kept.sum(-1, keepdim=True))""")


def top_p(x, limit, backwards):
    p = torch.softmax(x.flip(-1) if backwards else x, -1)
    ordered, at = torch.sort(p, dim=-1, descending=True, stable=True)
    kept = ordered.masked_fill(torch.cumsum(ordered, -1) - ordered > limit, 0.0)
    out = torch.zeros_like(p).scatter(-1, at, kept / kept.sum(-1, keepdim=True))
    return out.flip(-1) if backwards else out


honest = caught = 0
for seed in range(12):
    found = drawn(source, "extremes" if seed < 8 else "signed", seed)
    x = found["x", "value"]
    honest += wrong(found, top_p(x, 0.9, False)) + wrong(found, top_p(x, 0.9, True))
    caught += wrong(found, top_p(x, 0.903, False)) > 0
print(honest, caught)
'''

# Tokens go to slots of experts by a product with zeros and ones, which the module computes by counting.
DISPATCH = COMMON + '''
def dispatched(x, experts):
    hot = torch.nn.functional.one_hot(experts, 8).to(x.dtype).sum(1)
    slot = ((torch.cumsum(hot, 0) * hot - 1)[:, :, None] == torch.arange(16)).to(x.dtype)
    return torch.einsum("tec,td->ecd", slot, x)


MODULE = MODULE.replace("from torch import nn", "from torch import nn\\nfrom torch.nn.functional import one_hot")
rest = """
        hot = one_hot(experts, 8).to(x.dtype).sum(1)
        slot = ((torch.cumsum(hot, 0) * hot - 1)[:, :, None] == torch.arange(16)).to(x.dtype)
        return torch.einsum("tec,td->ecd", slot, x)"""
given = MODULE.format(names="x, experts", inputs="torch.randn(40, 9), torch.randint(0, 8, (40, 1))", forward=rest)
chosen = MODULE.format(names="x, logits", inputs="torch.randn(40, 9), 40 * torch.randn(40, 8)", forward="""
        experts = torch.softmax(logits, -1).topk(2).indices""" + rest)
counts, honest, coarse, shifted = 0, 0, 0, 0
for seed in range(6):
    found = drawn(given, "made", seed)
    x, experts = found["x", "value"], found["experts", "value"]
    counts += wrong(found, dispatched(x, experts))
    coarse += wrong(found, dispatched(x.bfloat16().float(), experts)) > 0
    found = drawn(chosen, "made" if seed < 3 else "extremes", seed)
    x, p = found["x", "value"], torch.softmax(found["logits", "value"], -1)
    # Two ways to order equal probabilities: the first expert first, or the last one first.
    honest += wrong(found, dispatched(x, torch.sort(p, dim=-1, descending=True, stable=True).indices[:, :2]))
    backwards = 7 - torch.sort(p.flip(-1), dim=-1, descending=True, stable=True).indices[:, :2]
    honest += wrong(found, dispatched(x, backwards))
    shifted += wrong(found, dispatched(x, backwards).roll(1, 0)) > 0
print(counts, honest, coarse, shifted)
'''

OTHERS = COMMON + '''
def made(inputs, forward, names="x"):
    return MODULE.format(names=names, inputs=inputs, forward=forward)


cases = {
    # The tanh of 9 and of 10 are equal in float32, and differ in float64.
    "computed": (made("torch.tensor([[9.0, 10.0, 1.0, 10.0]])", "return torch.tanh(x).argmax(-1)"), [0], "i64"),
    "of equal inputs the first": (made("torch.tensor([[9.0, 10.0, 1.0, 10.0]])", "return x.argmax(-1)"), [3], "i64"),
    "of equal results the first": (made("torch.tensor([[-1.0, -2.0, -3.0, -1.0]])", "return torch.relu(x).argmax(-1)"),
                                   [1], "i64"),
    "an input above its limit": (made("torch.tensor([[0.5, 1.0]])", "return torch.where(x < 0.99999994, x, -x)"),
                                 [[0.5, 1.0]], "f32"),
    "a result at its limit": (made("torch.tensor([[0.5, 3.0]])", "return torch.where(x / 3 * 0.1 > 0.1, x, -x)"),
                              [[-0.5, 3.0]], "f32"),
    "a result above its limit": (made("torch.tensor([[0.5, 3.001]])", "return torch.where(x / 3 * 0.1 > 0.1, x, -x)"),
                                 [[-0.5, -3.001]], "f32"),
    "an uncertain mask": (made("torch.tensor([[9.0, 10.0, 1.0, 11.0]])",
                                       "return torch.zeros_like(x).scatter(-1, torch.tanh(x).topk(1).indices, 1.0)"),
                                  [[1.0, 0.0, 0.0, 0.0]], "f32"),
    "a certain mask": (made("torch.tensor([[9.0, 10.0, 1.0, 11.0]])",
                            "return torch.zeros_like(x).scatter(-1, torch.tanh(x).topk(1).indices, 1.0)"),
                       [[0.0, 0.0, 1.0, 0.0]], "f32"),
}
for name, (source, result, dtype) in cases.items():
    print(name + ":", wrong(drawn(source, "made", 1, dtype), torch.tensor(result)))
'''


# An input that equals what the module compares it with, or lies halfway between two integers, has one correct result.
LEVELS = COMMON + '''
def judged(inputs, forward, right, other, names="x"):
    source = MODULE.format(names=names, inputs=inputs, forward="return " + forward)
    source = source.replace("from torch import nn", "from torch import nn\\nfrom torch.nn import functional as F")
    honest = caught = 0
    for seed in range(3):
        found = drawn(source, "outliers", seed)
        given = [found[name, "value"] for name in names.split(", ")]
        honest += wrong(found, right(*given))
        caught += wrong(found, other(*given)) > 0
    print(honest, caught)


F = torch.nn.functional
where = torch.where
judged("torch.randn(99, 70)", "F.threshold(x, 0.25, 3.0)", lambda x: where(x > 0.25, x, 3.0),
       lambda x: where(x >= 0.25, x, 3.0))
judged("torch.randn(99, 70)", "F.hardshrink(x)", lambda x: where(x.abs() > 0.5, x, 0.0),
       lambda x: where(x.abs() >= 0.5, x, 0.0))
judged("torch.randn(99, 70), torch.randn(99, 70)", "torch.where(x > y, x, -y)", lambda x, y: where(x > y, x, -y),
       lambda x, y: where(x >= y, x, -y), "x, y")
judged("torch.randn(99, 70)", "torch.round(x)", torch.round, lambda x: torch.floor(x + 0.5))
judged("torch.randn(99, 70)", "torch.floor(x)", torch.floor, lambda x: torch.ceil(x) - 1)
judged("torch.randn(99, 70)", "torch.where(x > 0.5, x * x, x)", lambda x: where(x > 0.5, x * x, x),
       lambda x: where(x >= 0.5, x * x, x))
'''


CASTS = COMMON + '''
source = MODULE.format(names="x", inputs="torch.tensor([[1.0, 300.0, -4.5, float('nan'), float('inf'), 2.0]])",
                       forward="return torch.round(x).to(torch.int8)")
found = drawn(source, "made", 1, "i8")
print(wrong(found, torch.tensor([[1, 127, -4, 0, 127, 2]])), wrong(found, torch.tensor([[1, -5, -4, 9, 9, 3]])))
'''


class Decisions(unittest.TestCase):
    def result(self, program: str) -> str:
        python = harness.ROOT / ".venv/bin/python"
        result = subprocess.run([python, "-c", program], cwd=harness.ROOT / "python", capture_output=True, text=True,
                                timeout=200)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_top_p_keeps_either_of_nearly_equal_tokens(self) -> None:
        honest, caught = map(int, self.result(TOP_P).split())
        self.assertEqual(honest, 0)
        self.assertGreater(caught, 4)  # other inputs have no token between the two limits

    def test_a_product_with_counted_zeros_and_ones_is_judged(self) -> None:
        counts, honest, coarse, shifted = map(int, self.result(DISPATCH).split())
        self.assertEqual((counts, honest), (0, 0))
        self.assertEqual(coarse, 6)
        self.assertGreater(shifted, 3)

    def test_a_cast_of_a_number_that_no_integer_equals_may_have_any_result(self) -> None:
        self.assertEqual(self.result(CASTS).split(), ["0", "1"])

    def test_an_input_at_its_limit_has_one_correct_result(self) -> None:
        self.assertEqual(self.result(LEVELS).splitlines(), ["0 3"] * 6)

    def test_a_decision_is_uncertain_only_if_rounding_can_turn_it(self) -> None:
        self.assertEqual(self.result(OTHERS).splitlines(), [
            "computed: 0",
            "of equal inputs the first: 1",
            "of equal results the first: 1",
            "an input above its limit: 1",
            "a result at its limit: 0",
            "a result above its limit: 1",
            "an uncertain mask: 0",
            "a certain mask: 1",
        ])


if __name__ == "__main__":
    harness.main()
