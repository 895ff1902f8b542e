#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the PTX of the opcode truth: one kernel a form, one instruction a lane.

Usage: make_forms.py [--check PTXAS]

Each kernel f_N is launched with one CTA of 128 threads and the pointers (out, a, b, c). The line before
it says `// form NAME | OUT:IN | TOLERANCE | TEXT`. IN has a letter for each operand: thread i reads
element i of that letter's pool for a, b or c. OUT has a letter for each result: result k lies at
out + 1024 * k, element i at i * its size. Pools (opcode_truth.py makes them):
  h w d  integers of 16, 32, 64 bits       f F    f32, f64           H G  f16, bf16 (16 bits)
  x y    pairs of f16, bf16                 q      two 8-bit floats   s    small counts (u32)
  o      f32 of moderate size               p      (result only) a predicate as 0 or 1
  M N T  f16x2, bf16x2, f32 between -1 and 1
  m n t z u v   small integers as f16x2, bf16x2, f32, f64, four e4m3, four e5m2: sums are exact
TOLERANCE is 0 (the same bits; any NaN is as good as another in f and F), or a list such as
`ulp=2,abs=1e-6,rel=1e-3`: one of them must hold.
"""
from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SIZE = {"h": 2, "H": 2, "G": 2, "q": 2, "d": 8, "F": 8, "z": 8}
REGISTER = {"h": "b16", "H": "b16", "G": "b16", "q": "b16", "d": "b64", "F": "f64", "z": "f64",
            "f": "f32", "o": "f32", "t": "f32", "T": "f32", "p": "pred"}
FLOATS = "f32 f64 f16 bf16".split()
LETTER = {"s16": "h", "u16": "h", "b16": "h", "s32": "w", "u32": "w", "b32": "w", "s64": "d",
          "u64": "d", "b64": "d", "f32": "f", "f64": "F", "f16": "H", "bf16": "G", "f16x2": "x",
          "bf16x2": "y", "s8": "w", "u8": "w", "pred": "p", "u16x2": "w", "s16x2": "w"}
INTS = "s16 u16 s32 u32 s64 u64".split()


class Form(NamedTuple):
    name: str
    signature: str
    tolerance: str
    text: str


class Forms:
    """The forms of each file, in the order of their kernels."""

    def __init__(self) -> None:
        self.files: dict[str, list[Form]] = {}

    def add(self, where: str, name: str, signature: str, text: str = "", tolerance: str = "0") -> None:
        """One form. Without text: the opcode with as many operands as the signature has."""
        outs, ins = signature.split(":")
        if not text:
            results = "%d" if len(outs) == 1 else "{" + ", ".join(f"%d{i}" for i in range(len(outs))) + "}"
            text = f"{name} {', '.join([results] + ['%' + c for c in 'abc'[:len(ins)]])};"
        self.files.setdefault(where, []).append(Form(name, signature, tolerance, text))

    def typed(self, where: str, base: str, types: Iterable[str], operands: int, tolerance: str = "0") -> None:
        for t in types:
            self.add(where, f"{base}.{t}", f"{LETTER[t]}:{LETTER[t] * operands}", tolerance=tolerance)


# ---------------------------------------------------------------- integers
def integers(forms: Forms) -> None:
    w = "integer"
    for op, n in ("add", 2), ("sub", 2), ("mul.lo", 2), ("mul.hi", 2), ("mad.lo", 3), ("mad.hi", 3), \
            ("min", 2), ("max", 2), ("sad", 3):
        forms.typed(w, op, INTS, n)
    for op in "neg", "abs":
        forms.typed(w, op, ["s16", "s32", "s64"], 1)
    for op in "div", "rem":
        for t in INTS:
            letter, bits = LETTER[t], t[1:]
            forms.add(w, f"{op}.{t}", f"{letter}:{letter * 2}",
                f"or.b{bits} %b, %b, 1; {op}.{t} %d, %a, %b;")
    for t, wide in ("s16", "w"), ("u16", "w"), ("s32", "d"), ("u32", "d"):
        forms.add(w, f"mul.wide.{t}", f"{wide}:{LETTER[t] * 2}")
        forms.add(w, f"mad.wide.{t}", f"{wide}:{LETTER[t] * 2}{wide}")
    for t in "s32", "u32":
        for half in "lo", "hi":
            forms.add(w, f"mul24.{half}.{t}", "w:ww")
            forms.add(w, f"mad24.{half}.{t}", "w:www")
    for name, n in ("add.sat.s32", 2), ("sub.sat.s32", 2), ("mad.hi.sat.s32", 3), \
            ("mad24.hi.sat.s32", 3), ("min.relu.s32", 2), ("max.relu.s32", 2):
        forms.add(w, name, "w:" + "w" * n)
    for name in "add.u16x2", "add.s16x2", "min.u16x2", "max.u16x2", "min.s16x2", "max.s16x2", \
            "min.relu.s16x2", "max.relu.s16x2":
        forms.add(w, name, "w:ww")
    for t in "u32", "s32", "u64", "s64":
        c = LETTER[t]
        low = f".reg .b{t[1:]} %e;"
        forms.add(w, f"add.cc.{t}", f"{c}{c}:{c * 3}",
            f"{low} add.cc.{t} %d0, %a, %b; addc.{t} %d1, %c, 0;")
        forms.add(w, f"addc.cc.{t}", f"{c}{c}:{c * 3}",
            f"{low} add.cc.{t} %e, %a, %b; addc.cc.{t} %d0, %b, %c; addc.{t} %d1, %a, %c;")
        forms.add(w, f"sub.cc.{t}", f"{c}{c}:{c * 3}",
            f"{low} sub.cc.{t} %d0, %a, %b; subc.{t} %d1, %c, 0;")
        forms.add(w, f"subc.cc.{t}", f"{c}{c}:{c * 3}",
            f"{low} sub.cc.{t} %e, %a, %b; subc.cc.{t} %d0, %b, %c; subc.{t} %d1, %a, %c;")
        forms.add(w, f"mad.lo.cc.{t}", f"{c}{c}:{c * 3}",
            f"mad.lo.cc.{t} %d0, %a, %b, %c; madc.hi.{t} %d1, %a, %b, 0;")
        forms.add(w, f"mad.hi.cc.{t}", f"{c}{c}:{c * 3}",
            f"mad.hi.cc.{t} %d0, %a, %b, %c; madc.lo.{t} %d1, %a, %b, %c;")
        forms.add(w, f"madc.lo.cc.{t}", f"{c}{c}:{c * 3}",
            f"{low} add.cc.{t} %e, %a, %c; madc.lo.cc.{t} %d0, %a, %b, %c; addc.{t} %d1, %a, 0;")
        forms.add(w, f"madc.hi.cc.{t}", f"{c}{c}:{c * 3}",
            f"{low} add.cc.{t} %e, %a, %c; madc.hi.cc.{t} %d0, %a, %b, %c; addc.{t} %d1, %a, 0;")


# ---------------------------------------------------------------- bits, moves, selection
def bits(forms: Forms) -> None:
    w = "bits"
    for op in "and", "or", "xor":
        forms.typed(w, op, ["b16", "b32", "b64"], 2)
        forms.add(w, f"{op}.pred", "p:ww", f"setp.lt.s32 %x, %a, 0; setp.lt.s32 %y, %b, 0; "
                                     f"{op}.pred %d, %x, %y;")
    for op in "not", "cnot":
        forms.typed(w, op, ["b16", "b32", "b64"], 1)
    forms.add(w, "not.pred", "p:w", "setp.lt.s32 %x, %a, 0; not.pred %d, %x;")
    for t in "b16", "b32", "b64":
        forms.add(w, f"shl.{t}", f"{LETTER[t]}:{LETTER[t]}s")
    for t in INTS + ["b16", "b32", "b64"]:
        forms.add(w, f"shr.{t}", f"{LETTER[t]}:{LETTER[t]}s")
    for way in "l", "r":
        for mode in "wrap", "clamp":
            forms.add(w, f"shf.{way}.{mode}.b32", "w:wws")
    for table in 0x96, 0xca, 0xe8, 0x01, 0xf0:
        forms.add(w, f"lop3.b32.{table:02x}", "w:www", f"lop3.b32 %d, %a, %b, %c, {table};")
    for op in "or", "and":
        forms.add(w, f"lop3.{op}.b32", "wp:www",
            f"setp.lt.s32 %x, %c, 0; lop3.{op}.b32 %d0|%d1, %a, %b, %c, 0x80, %x;")
    forms.add(w, "prmt.b32", "w:www")
    for mode in "f4e", "b4e", "rc8", "ecl", "ecr", "rc16":
        forms.add(w, f"prmt.b32.{mode}", "w:wws")
    for op in "popc", "clz":
        forms.add(w, f"{op}.b32", "w:w")
        forms.add(w, f"{op}.b64", "w:d")
    forms.typed(w, "brev", ["b32", "b64"], 1)
    for t in INTS[2:]:
        forms.add(w, f"bfind.{t}", f"w:{LETTER[t]}")
        forms.add(w, f"bfind.shiftamt.{t}", f"w:{LETTER[t]}")
        forms.add(w, f"bfe.{t}", f"{LETTER[t]}:{LETTER[t]}ss")
    for t in "b32", "b64":
        c = LETTER[t]
        forms.add(w, f"bfi.{t}", f"{c}:{c}{c}s",
            f".reg .b32 %n; shr.u32 %n, %c, 1; bfi.{t} %d, %a, %b, %c, %n;")
    for mode in "clamp", "wrap":
        for t in "s32", "u32":
            forms.add(w, f"szext.{mode}.{t}", "w:ws")
        forms.add(w, f"bmsk.{mode}.b32", "w:ss")
    forms.add(w, "fns.b32", "w:wss", "sub.s32 %c, %c, 20; fns.b32 %d, %a, %b, %c;")
    for a in "s32", "u32":
        for b in "s32", "u32":
            forms.add(w, f"dp4a.{a}.{b}", "w:www")
            for half in "lo", "hi":
                forms.add(w, f"dp2a.{half}.{a}.{b}", "w:www")
    for t in "b16", "b32", "b64", "s16", "u32", "s64", "f32", "f64":
        c = LETTER[t]
        forms.add(w, f"selp.{t}", f"{c}:{c}{c}w", f"setp.lt.s32 %x, %c, 0; selp.{t} %d, %a, %b, %x;")
    for t in "b16", "u16", "s32", "b64", "f32", "f64":
        c = LETTER[t]
        forms.add(w, f"slct.{t}.s32", f"{c}:{c}{c}w")
        forms.add(w, f"slct.{t}.f32", f"{c}:{c}{c}f")
    for t in "b16", "b32", "b64", "f32", "f64":
        c = LETTER[t]
        forms.add(w, f"mov.{t}", f"{c}:{c}")
    forms.add(w, "mov.pred", "p:w", "setp.lt.s32 %x, %a, 0; mov.pred %d, %x;")
    forms.add(w, "mov.b64.pack2", "d:ww", "mov.b64 %d, {%a, %b};")
    forms.add(w, "mov.b64.unpack2", "ww:d", "mov.b64 {%d0, %d1}, %a;")
    forms.add(w, "mov.b32.pack2", "w:hh", "mov.b32 %d, {%a, %b};")
    forms.add(w, "mov.b32.unpack2", "hh:w", "mov.b32 {%d0, %d1}, %a;")
    forms.add(w, "mov.b64.pack4", "d:hhh", "mov.b64 %d, {%a, %b, %c, %a};")
    forms.add(w, "mov.b64.unpack4", "hhhh:d", "mov.b64 {%d0, %d1, %d2, %d3}, %a;")


# ---------------------------------------------------------------- floats
ROUNDS = "rn rz rm rp".split()


def floats(forms: Forms) -> None:
    w = "float"
    for t in "f32", "f64":
        c = LETTER[t]
        for op in "add", "sub", "mul":
            for r in [""] + ROUNDS:
                forms.add(w, f"{op}{'.' * bool(r)}{r}.{t}", f"{c}:{c}{c}")
        for r in ROUNDS:
            forms.add(w, f"fma.{r}.{t}", f"{c}:{c}{c}{c}")
            forms.add(w, f"div.{r}.{t}", f"{c}:{c}{c}")
            forms.add(w, f"rcp.{r}.{t}", f"{c}:{c}")
            forms.add(w, f"sqrt.{r}.{t}", f"{c}:{c}")
        forms.add(w, f"mad.rn.{t}", f"{c}:{c}{c}{c}")
        for op in "min", "max", "copysign":
            forms.add(w, f"{op}.{t}", f"{c}:{c}{c}")
        for op in "neg", "abs":
            forms.add(w, f"{op}.{t}", f"{c}:{c}")
        for test in "finite", "infinite", "number", "notanumber", "normal", "subnormal":
            forms.add(w, f"testp.{test}.{t}", f"p:{c}")
    for op in "add", "sub", "mul":
        for flags in "ftz", "sat", "rz.ftz", "rp.sat", "rm.ftz.sat":
            forms.add(w, f"{op}.{flags}.f32", "f:ff")
    for flags in "rn.ftz", "rn.sat", "rz.ftz.sat", "rm.ftz":
        forms.add(w, f"fma.{flags}.f32", "f:fff")
    for op in "min", "max":
        for flags in "ftz", "NaN", "ftz.NaN", "xorsign.abs", "NaN.xorsign.abs", "ftz.xorsign.abs":
            forms.add(w, f"{op}.{flags}.f32", "f:ff")
    for op in "neg.ftz", "abs.ftz":
        forms.add(w, f"{op}.f32", "f:f")
    for r in ROUNDS:
        forms.add(w, f"div.{r}.ftz.f32", "f:ff")
        forms.add(w, f"rcp.{r}.ftz.f32", "f:f")
        forms.add(w, f"sqrt.{r}.ftz.f32", "f:f")
    special(forms)


def special(forms: Forms) -> None:
    """Approximate functions: bounds of the PTX ISA (or the CUDA guide), doubled for our own error."""
    w = "float"
    for ftz in "", ".ftz":
        forms.add(w, f"div.approx{ftz}.f32", "f:oo", tolerance="ulp=3")
        forms.add(w, f"div.full{ftz}.f32", "f:oo", tolerance="ulp=3")
        forms.add(w, f"rcp.approx{ftz}.f32", "f:f", tolerance="ulp=2")
        forms.add(w, f"sqrt.approx{ftz}.f32", "f:f", tolerance="ulp=4")
        forms.add(w, f"rsqrt.approx{ftz}.f32", "f:f", tolerance="ulp=3")
        forms.add(w, f"ex2.approx{ftz}.f32", "f:f", tolerance="ulp=4")
        forms.add(w, f"lg2.approx{ftz}.f32", "f:f", tolerance="abs=4.8e-7,ulp=4")
        forms.add(w, f"sin.approx{ftz}.f32", "f:o", tolerance="abs=1e-6,rel=1e-5")
        forms.add(w, f"cos.approx{ftz}.f32", "f:o", tolerance="abs=1e-6,rel=1e-5")
    forms.add(w, "tanh.approx.f32", "f:f", tolerance="rel=1e-3")
    forms.add(w, "rcp.approx.ftz.f64", "F:F", tolerance="rel=3e-6")
    forms.add(w, "rsqrt.approx.f64", "F:F", tolerance="rel=1e-12")
    forms.add(w, "rsqrt.approx.ftz.f64", "F:F", tolerance="rel=3e-6")


# ---------------------------------------------------------------- 16-bit floats
def halves(forms: Forms) -> None:
    w = "half"
    for t in "f16", "f16x2", "bf16", "bf16x2":
        c, is_half = LETTER[t], t.startswith("f")
        for op in "add", "sub", "mul":
            flags = ["", "rn", "ftz", "sat", "rn.ftz.sat"] if is_half else ["", "rn"]
            for f in flags:
                forms.add(w, ".".join(x for x in (op, f, t) if x), f"{c}:{c}{c}")
        flags = ["rn", "rn.ftz", "rn.sat", "rn.relu", "rn.ftz.relu"] if is_half else ["rn", "rn.relu"]
        for f in flags:
            forms.add(w, f"fma.{f}.{t}", f"{c}:{c}{c}{c}")
        for op in "min", "max":
            flags = ["", "NaN", "xorsign.abs", "NaN.xorsign.abs"] + ["ftz", "ftz.NaN"] * is_half
            for f in flags:
                forms.add(w, ".".join(x for x in (op, f, t) if x), f"{c}:{c}{c}")
        for op in ["neg", "abs"] + ["neg.ftz", "abs.ftz"] * is_half:
            forms.add(w, f"{op}.{t}", f"{c}:{c}")
        loose = "rel=2.2e-3,abs=6.2e-8" if is_half else "rel=1.6e-2"
        forms.add(w, f"ex2.approx{'' if is_half else '.ftz'}.{t}", f"{c}:{c}", tolerance=loose)
        forms.add(w, f"tanh.approx.{t}", f"{c}:{c}",
            tolerance="abs=1.1e-3,rel=2e-3" if is_half else "abs=8e-3,rel=8e-3")


# ---------------------------------------------------------------- conversions
def conversions(forms: Forms) -> None:
    w = "convert"
    eight = ["s8", "u8"]
    for to in eight + INTS:
        for source in eight + INTS:
            if to == source:
                continue
            forms.add(w, f"cvt.{to}.{source}", f"{LETTER[to]}:{LETTER[source]}", f"cvt.{to}.{source} %d, %a;")
            narrows = int(to[1:]) < int(source[1:]) or (to[0] != source[0] and not (
                source[0] == "u" and int(to[1:]) > int(source[1:])))
            if narrows:
                forms.add(w, f"cvt.sat.{to}.{source}", f"{LETTER[to]}:{LETTER[source]}",
                    f"cvt.sat.{to}.{source} %d, %a;")
    for to in FLOATS:
        for source in eight + INTS:
            for r in ROUNDS:
                if (r != "rn" and (to == "bf16" or source in eight)) or (to == "bf16" and source in eight):
                    continue
                forms.add(w, f"cvt.{r}.{to}.{source}", f"{LETTER[to]}:{LETTER[source]}")
    for source in FLOATS:
        for to in eight + INTS:
            for r in "rni", "rzi", "rmi", "rpi":
                if (r in ("rmi", "rpi") and to in ("s8", "u16")) or (source == "bf16" and to in eight):
                    continue
                forms.add(w, f"cvt.{r}.{to}.{source}", f"{LETTER[to]}:{LETTER[source]}")
    for to in "s32", "u64", "s8":
        forms.add(w, f"cvt.rzi.ftz.{to}.f32", f"{LETTER[to]}:f")
        forms.add(w, f"cvt.rpi.ftz.{to}.f32", f"{LETTER[to]}:f")
    for t in "f32", "f64", "f16":
        c = LETTER[t]
        for r in "rni", "rzi", "rmi", "rpi":
            forms.add(w, f"cvt.{r}.{t}.{t}", f"{c}:{c}")
        forms.add(w, f"cvt.sat.{t}.{t}", f"{c}:{c}")
    forms.add(w, "cvt.ftz.f32.f32", "f:f")
    forms.add(w, "cvt.rmi.ftz.f32.f32", "f:f")
    for r in ROUNDS:
        for name, c in ("f32.f64", "f:F"), ("f16.f64", "H:F"), ("f16.f32", "H:f"):
            forms.add(w, f"cvt.{r}.{name}", c)
    forms.add(w, "cvt.rn.ftz.f32.f64", "f:F")
    forms.add(w, "cvt.rn.sat.f32.f64", "f:F")
    for name, c in ("f64.f32", "F:f"), ("f64.f16", "F:H"), ("f32.f16", "f:H"), ("f32.bf16", "f:G"), \
            ("f64.bf16", "F:G"):
        forms.add(w, f"cvt.{name}", c)
    for name in "cvt.ftz.f64.f32", "cvt.sat.f64.f32":
        forms.add(w, name, "F:f")
    forms.add(w, "cvt.ftz.f32.f16", "f:H")
    forms.add(w, "cvt.sat.f32.f16", "f:H")
    forms.add(w, "cvt.rn.bf16.f64", "G:F")
    forms.add(w, "cvt.rn.bf16.f16", "G:H")
    forms.add(w, "cvt.rn.f16.bf16", "H:G")
    for flags in "rn.ftz", "rn.sat", "rz.ftz.sat", "rn.relu", "rz.relu", "rn.satfinite", \
            "rn.relu.satfinite", "rz.satfinite":
        forms.add(w, f"cvt.{flags}.f16.f32", "H:f")
    for flags in "rn", "rz", "rn.relu", "rz.relu", "rn.satfinite", "rn.relu.satfinite":
        forms.add(w, f"cvt.{flags}.bf16.f32", "G:f")
        forms.add(w, f"cvt.{flags}.f16x2.f32", "x:ff")
        forms.add(w, f"cvt.{flags}.bf16x2.f32", "y:ff")
    for flags in "rna", "rn", "rz", "rn.relu", "rz.relu":
        forms.add(w, f"cvt.{flags}.tf32.f32", "w:w")
    for fp8 in "e4m3x2", "e5m2x2":
        for relu in "", ".relu":
            forms.add(w, f"cvt.rn.satfinite{relu}.{fp8}.f32", "q:ff")
            forms.add(w, f"cvt.rn.satfinite{relu}.{fp8}.f16x2", "q:x")
            forms.add(w, f"cvt.rn{relu}.f16x2.{fp8}", "x:q")
    for t in "s16", "u16":
        forms.add(w, f"cvt.pack.sat.{t}.s32", "w:ww")
    for t in "s8", "u8", "s4", "u4", "s2", "u2":
        forms.add(w, f"cvt.pack.sat.{t}.s32.b32", "w:www")


# ---------------------------------------------------------------- comparisons
def comparisons(forms: Forms) -> None:
    w = "compare"
    ordered = "eq ne lt le gt ge".split()
    unordered = "equ neu ltu leu gtu geu num nan".split()
    for t in INTS:
        for op in ordered + ["lo", "ls", "hi", "hs"] * (t[0] == "u"):
            forms.add(w, f"setp.{op}.{t}", f"p:{LETTER[t] * 2}")
    for t in "b16", "b32", "b64":
        for op in "eq", "ne":
            forms.add(w, f"setp.{op}.{t}", f"p:{LETTER[t] * 2}")
    for t in FLOATS:
        for op in ordered + unordered:
            forms.add(w, f"setp.{op}.{t}", f"p:{LETTER[t] * 2}")
    for t in "f16x2", "bf16x2":
        for op in ordered + unordered:
            forms.add(w, f"setp.{op}.{t}", f"pp:{LETTER[t] * 2}", f"setp.{op}.{t} %d0|%d1, %a, %b;")
    for op in "lt", "eq", "neu":
        forms.add(w, f"setp.{op}.ftz.f32", "p:ff")
        forms.add(w, f"setp.{op}.ftz.f16", "p:HH")
        forms.add(w, f"setp.{op}.ftz.f16x2", "pp:xx", f"setp.{op}.ftz.f16x2 %d0|%d1, %a, %b;")
    for how in "and", "or", "xor":
        forms.add(w, f"setp.lt.{how}.f16", "p:HHw",
            f"setp.lt.s32 %x, %c, 0; setp.lt.{how}.f16 %d, %a, %b, !%x;")
        for t in "s32", "f32", "f64":
            c = LETTER[t]
            forms.add(w, f"setp.lt.{how}.{t}", f"pp:{c}{c}w",
                f"setp.lt.s32 %x, %c, 0; setp.lt.{how}.{t} %d0|%d1, %a, %b, !%x;")
        forms.add(w, f"setp.ge.{how}.f16x2", "pp:xxw",
            f"setp.lt.s32 %x, %c, 0; setp.ge.{how}.f16x2 %d0|%d1, %a, %b, %x;")
    for to in "u32", "s32", "f32":
        for t in INTS + ["f32", "f64"]:
            forms.add(w, f"set.lt.{to}.{t}", f"{LETTER[to]}:{LETTER[t] * 2}")
        forms.add(w, f"set.ge.and.{to}.f32", f"{LETTER[to]}:ffw",
            f"setp.lt.s32 %x, %c, 0; set.ge.and.{to}.f32 %d, %a, %b, %x;")
    for t in "f16", "bf16":
        for to in t, "u16", "s16", "u32", "s32":
            forms.add(w, f"set.lt.{to}.{t}", f"{LETTER[to]}:{LETTER[t] * 2}")
        forms.add(w, f"set.leu.{t}x2.{t}x2", f"{LETTER[t + 'x2']}:{LETTER[t + 'x2'] * 2}")


# ---------------------------------------------------------------- memory
def memory(forms: Forms) -> None:
    w = "memory"
    shared = ".shared .align 16 .b8 sm[4096]; .reg .b64 %g; .reg .b32 %sa; mov.u32 %sa, sm;"
    for t, c in ("u8", "w"), ("s8", "w"), ("b8", "w"), ("u16", "w"), ("s16", "w"), ("b16", "h"), \
            ("u32", "w"), ("s32", "w"), ("b32", "w"), ("f32", "f"), ("u64", "d"), ("s64", "d"), \
            ("f64", "F"), ("u32", "d"), ("s32", "d"), ("s8", "d"):
        bits_ = t.lstrip("usbf")
        shift = {"8": 0, "16": 1, "32": 2, "64": 3}[bits_]
        forms.add(w, f"ld.shared.{t}.{c}", f"{c}:{c}",
            f"{shared} shl.b32 %i, %i, {shift}; add.u32 %sa, %sa, %i; st.shared.{t.replace('s', 'u')} "
            f"[%sa], %a; ld.shared.{t} %d, [%sa];")
    for n, t, c in (2, "u16", "h"), (4, "u16", "h"), (2, "u32", "w"), (4, "u32", "w"), (4, "f32", "f"), \
            (2, "u64", "d"), (2, "f64", "F"), (4, "u8", "h"), (2, "s8", "h"), (4, "s16", "w"):
        values = ", ".join(["%a", "%b", "%c", "%a"][:n])
        results = ", ".join(f"%d{i}" for i in range(n))
        bytes_ = n * int(t.lstrip("usbf")) // 8
        forms.add(w, f"ld.shared.v{n}.{t}", f"{c * n}:{c * min(n, 3)}",
            f"{shared} mad.lo.u32 %sa, %i, {bytes_}, %sa; st.shared.v{n}.{t.replace('s', 'u')} [%sa], "
            f"{{{values}}}; ld.shared.v{n}.{t} {{{results}}}, [%sa];")
    for flags in "global.nc", "global.ca", "global.cg", "global.cs", "global.lu", "global.cv", \
            "volatile.global", "global.nc.L1::no_allocate", "global.L1::evict_last", \
            "global.L2::128B", "relaxed.gpu.global", "acquire.sys.global", "weak.global", \
            "global.nc.L1::evict_first.L2::64B":
        forms.add(w, f"ld.{flags}.u32", "w:w", f"mad.wide.u32 %p, %i, 4, %pa; ld.{flags}.u32 %d, [%p];")
    forms.add(w, "ld.global.L2::cache_hint.v2.f32", "ff:ff",
        "createpolicy.fractional.L2::evict_last.b64 %q, 1.0; mad.wide.u32 %p, %i, 8, %po; "
        "st.global.v2.f32 [%p], {%a, %b}; ld.global.L2::cache_hint.v2.f32 {%d0, %d1}, [%p], %q; "
        "bar.sync 0;")
    forms.add(w, "generic", "wpppp:w",
        f"{shared} mad.lo.u32 %sa, %i, 4, %sa; st.shared.u32 [%sa], %a; cvt.u64.u32 %g, %sa; "
        "cvta.shared.u64 %g, %g; ld.u32 %d0, [%g]; isspacep.shared %d1, %g; isspacep.global %d2, %g; "
        "isspacep.local %d3, %pa; isspacep.global %d4, %pa;")
    forms.add(w, "cvta.to.shared.u64", "w:w",
        f"{shared} mad.lo.u32 %sa, %i, 4, %sa; st.shared.u32 [%sa], %a; cvt.u64.u32 %g, %sa; "
        "cvta.shared.u64 %g, %g; cvta.to.shared.u64 %g, %g; ld.shared.u32 %d, [%g];")
    forms.add(w, "ld.local.v4.u32", "wwww:www",
        ".local .align 16 .b8 mine[64]; .reg .b64 %g; mov.u64 %g, mine; cvta.local.u64 %g, %g; "
        "cvta.to.local.u64 %g, %g; st.local.v4.u32 [%g+16], {%a, %b, %c, %a}; "
        "ld.local.v4.u32 {%d0, %d1, %d2, %d3}, [%g+16];")
    forms.add(w, "no_effect", "w:w",
        "prefetch.global.L1 [%pa]; prefetch.global.L2 [%pa]; prefetch.L2 [%pa]; prefetchu.L1 [%pa]; "
        "prefetch.global.L2::evict_last [%pa]; applypriority.global.L2::evict_normal [%pa], 128; "
        "membar.cta; membar.gl; membar.sys; fence.acq_rel.gpu; fence.sc.sys; fence.acq_rel.cta; "
        "fence.proxy.alias; nanosleep.u32 1; createpolicy.fractional.L2::evict_first.b64 %q, 0.5; "
        "mov.b32 %d, %a;")
    for space in "shared", "global":
        atomics(forms, space, shared)


def atomics(forms: Forms, space: str, shared: str) -> None:
    w = "memory"

    def put(op: str, t: str, operands: int = 1, flags: str = "") -> None:
        c = LETTER[t]
        size = SIZE.get(c, 4)
        plain = {2: "b16", 4: "b32", 8: "b64"}[size]
        place = f"mad.wide.u32 %p, %i, {size}, %po; add.u64 %p, %p, 8192;"
        where = "[%p]"
        if space == "shared":
            place, where = f"{shared} mad.lo.u32 %sa, %i, {size}, %sa;", "[%sa]"
        sources = "%b" if operands == 1 else "%b, %c"
        name = f"{flags + '.' if flags else ''}{space}.{op}.{t}"
        forms.add(w, f"atom.{name}", f"{c}{c}:{c * (1 + operands)}",
            f"{place} st.{space}.{plain} {where}, %a; atom.{name} %d0, {where}, {sources}; "
            f"ld.{space}.{plain} %d1, {where};")
        if operands == 1 and op != "exch" and "acq" not in flags:
            forms.add(w, f"red.{name}", f"{c}:{c}{c}",
                f"{place} st.{space}.{plain} {where}, %a; red.{name} {where}, %b; "
                f"ld.{space}.{plain} %d, {where};")

    for op, types in ("add", "u32 s32 u64 f32 f64"), ("min", "u32 s32 u64 s64"), \
            ("max", "u32 s32 u64 s64"), ("and", "b32 b64"), ("or", "b32 b64"), ("xor", "b32 b64"), \
            ("exch", "b32 b64"), ("inc", "u32"), ("dec", "u32"):
        for t in types.split():
            put(op, t)
    for t in "f16", "f16x2", "bf16", "bf16x2":
        put("add.noftz", t)
    for t in "b16", "b32", "b64":
        put("cas", t, 2)
    put("add", "u32", 1, "relaxed.gpu")
    put("add", "s32", 1, "acq_rel.sys")
    put("exch", "b32", 1, "acquire.cta")
    if space == "global":
        forms.add(w, "red.global.add.v2.f32", "ff:ff",
            "mad.wide.u32 %p, %i, 8, %po; add.u64 %p, %p, 8192; st.global.v2.f32 [%p], {%a, %b}; "
            "red.global.add.v2.f32 [%p], {%b, %a}; ld.global.v2.f32 {%d0, %d1}, [%p];")
        forms.add(w, "atom.global.v2.f32.add", "ffff:ff",
            "mad.wide.u32 %p, %i, 8, %po; add.u64 %p, %p, 8192; st.global.v2.f32 [%p], {%a, %b}; "
            "atom.global.v2.f32.add {%d0, %d1}, [%p], {%b, %a}; ld.global.v2.f32 {%d2, %d3}, [%p];")


# ---------------------------------------------------------------- warps
def warps(forms: Forms) -> None:
    w = "warp"
    for mode in "up", "down", "bfly", "idx":
        for bound in 0, 31, 0x1c1f, 0x181f, 0x1c03:
            forms.add(w, f"shfl.sync.{mode}.b32.{bound:x}", "wp:ws",
                f"shfl.sync.{mode}.b32 %d0|%d1, %a, %b, {bound}, 0xffffffff;")
    few = "setp.lt.s32 %x, %a, 0;"
    for mode in "all", "any", "uni":
        forms.add(w, f"vote.sync.{mode}.pred", "p:w", f"{few} vote.sync.{mode}.pred %d, %x, 0xffffffff;")
        forms.add(w, f"vote.sync.{mode}.pred.not", "p:s",
            f"setp.ge.u32 %x, %a, 0; vote.sync.{mode}.pred %d, !%x, 0xffffffff;")
    forms.add(w, "vote.sync.ballot.b32", "w:w", f"{few} vote.sync.ballot.b32 %d, %x, 0xffffffff;")
    for op, types in ("add", "s32 u32"), ("min", "s32 u32"), ("max", "s32 u32"), ("and", "b32"), \
            ("or", "b32"), ("xor", "b32"):
        for t in types.split():
            forms.add(w, f"redux.sync.{op}.{t}", "w:w", f"redux.sync.{op}.{t} %d, %a, 0xffffffff;")
    forms.add(w, "match.any.sync.b32", "w:s", "and.b32 %a, %a, 3; match.any.sync.b32 %d, %a, 0xffffffff;")
    forms.add(w, "match.any.sync.b64", "w:d", "and.b64 %a, %a, 5; match.any.sync.b64 %d, %a, 0xffffffff;")
    forms.add(w, "match.all.sync.b32", "wp:s",
        ".reg .b32 %n; shr.u32 %n, %i, 5; setp.lt.u32 %x, %n, 2; @%x mov.b32 %a, 7; "
        "match.all.sync.b32 %d0|%d1, %a, 0xffffffff;")
    forms.add(w, "match.all.sync.b64", "wp:d",
        ".reg .b32 %n; shr.u32 %n, %i, 5; setp.lt.u32 %x, %n, 2; @%x mov.b64 %a, 7; "
        "match.all.sync.b64 %d0|%d1, %a, 0xffffffff;")
    forms.add(w, "activemask.b32", "w:w", "activemask.b32 %d;")
    forms.add(w, "elect.sync", "wp:w", "elect.sync %d0|%d1, 0xffffffff;")
    forms.add(w, "redux.half", "w:w",
        ".reg .b32 %n; mov.u32 %n, %laneid; setp.lt.u32 %x, %n, 16; mov.b32 %d, %a; "
        "@%x redux.sync.add.s32 %d, %a, 0x0000ffff;")
    for name in "laneid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge", \
            "tid.x", "ntid.x", "ctaid.x", "nctaid.x":
        forms.add(w, f"mov.{name}", "w:", f"mov.u32 %d, %{name};")


# ---------------------------------------------------------------- matrices
def fragment(name: str, letter: str, n: int, first: int) -> tuple[str, str]:
    """Registers name0.. loaded from the pool of `letter`, shifted so that no two are alike."""
    kind = REGISTER.get(letter, "b32") if letter not in "tT" or name == "c" else "b32"  # tf32 is bits
    size = SIZE.get(letter, 4)
    text = [f".reg .{kind} " + ", ".join(f"%{name}{i}" for i in range(n)) + ";"]
    for i in range(n):
        text.append(f"add.u32 %n, %i, {(first + i) * 29}; and.b32 %n, %n, 127; "
                    f"mad.wide.u32 %p, %n, {size}, %p{name}; ld.global.{kind} %{name}{i}, [%p];")
    return "\n  ".join(text), "{" + ", ".join(f"%{name}{i}" for i in range(n)) + "}"


def product(forms: Forms, shape: str, types: str, letters: str, counts: tuple[int, int, int], more: str = "",
            name: str = "", tolerance: str = "0") -> None:
    """letters and counts of d, a, b."""
    d, a, b = tuple(letters)
    nd, na, nb = counts
    parts = [".reg .b32 %n;"]
    names = []
    for operand, letter, n, first in ("a", a, na, 0), ("b", b, nb, 8), ("c", d, nd, 16):
        text, registers = fragment(operand, letter, n, first)
        parts.append(text)
        names.append(registers)
    results = "{" + ", ".join(f"%d{i}" for i in range(nd)) + "}" if nd > 1 else "{%d}"
    opcode = f"mma.sync.aligned.{shape}.row.col{more}.{types}"
    parts.append(f"{opcode} {results}, {', '.join(names)};")
    outs = {"m": "x", "M": "x", "t": "f", "T": "f", "z": "F"}.get(d, d) * nd
    forms.add("matrix", name or opcode, f"{outs}:" + a + b + d, "\n  ".join(parts), tolerance)


def matrices(forms: Forms) -> None:
    for k, na, nb in (8, 2, 1), (16, 4, 2):
        product(forms, f"m16n8k{k}", "f32.f16.f16.f32", "tmm", (4, na, nb))
        product(forms, f"m16n8k{k}", "f16.f16.f16.f16", "mmm", (2, na, nb))
        product(forms, f"m16n8k{k}", "f32.bf16.bf16.f32", "tnn", (4, na, nb))
    for k, na, nb in (4, 2, 1), (8, 4, 2):
        product(forms, f"m16n8k{k}", "f32.tf32.tf32.f32", "ttt", (4, na, nb))
    product(forms, "m8n8k4", "f64.f64.f64.f64", "zzz", (2, 1, 1))
    for k, na, nb in (4, 2, 1), (8, 4, 2), (16, 8, 4):
        product(forms, f"m16n8k{k}", "f64.f64.f64.f64", "zzz", (4, na, nb))
    for a, la in ("e4m3", "u"), ("e5m2", "v"):
        for b, lb in ("e4m3", "u"), ("e5m2", "v"):
            product(forms, "m16n8k32", f"f32.{a}.{b}.f32", "t" + la + lb, (4, 4, 2))
            product(forms, "m16n8k32", f"f16.{a}.{b}.f16", "m" + la + lb, (2, 4, 2))
            product(forms, "m16n8k16", f"f32.{a}.{b}.f32", "t" + la + lb, (4, 2, 1))
            product(forms, "m16n8k16", f"f16.{a}.{b}.f16", "m" + la + lb, (2, 2, 1))
    for a in "s8", "u8":
        for b in "s8", "u8":
            for more in "", ".satfinite":
                product(forms, "m8n8k16", f"s32.{a}.{b}.s32", "www", (2, 1, 1), more)
                product(forms, "m16n8k16", f"s32.{a}.{b}.s32", "www", (4, 2, 1), more)
                product(forms, "m16n8k32", f"s32.{a}.{b}.s32", "www", (4, 4, 2), more)
    for a in "s4", "u4":
        for b in "s4", "u4":
            for more in "", ".satfinite":
                product(forms, "m8n8k32", f"s32.{a}.{b}.s32", "www", (2, 1, 1), more)
                product(forms, "m16n8k32", f"s32.{a}.{b}.s32", "www", (4, 2, 1), more)
                product(forms, "m16n8k64", f"s32.{a}.{b}.s32", "www", (4, 4, 2), more)
    for op in "xor", "and":
        product(forms, "m8n8k128", f"s32.b1.b1.s32.{op}.popc", "www", (2, 1, 1))
        product(forms, "m16n8k128", f"s32.b1.b1.s32.{op}.popc", "www", (4, 2, 1))
        product(forms, "m16n8k256", f"s32.b1.b1.s32.{op}.popc", "www", (4, 4, 2))
    # Values that are not exact: how far the sums of 16 or 8 products may be from the hardware's.
    product(forms, "m16n8k16", "f32.f16.f16.f32", "TMM", (4, 4, 2), name="mma.f16.rounded", tolerance="abs=4e-6")
    product(forms, "m16n8k16", "f32.bf16.bf16.f32", "TNN", (4, 4, 2), name="mma.bf16.rounded", tolerance="abs=4e-6")
    product(forms, "m16n8k8", "f32.tf32.tf32.f32", "TTT", (4, 4, 2), name="mma.tf32.rounded", tolerance="abs=4e-6")
    product(forms, "m16n8k16", "f16.f16.f16.f16", "MMM", (2, 4, 2), name="mma.half.rounded", tolerance="abs=8e-3")
    rows(forms)
    copies(forms)


def rows(forms: Forms) -> None:
    w = "matrix"
    # A warp owns 512 bytes; the rows of a matrix are shuffled so that their addresses matter.
    shared = (".shared .align 128 .b8 sm[4096]; .reg .b32 %n, %row, %warp; shr.u32 %warp, %i, 5; "
              "shl.b32 %warp, %warp, 9; mov.u32 %n, sm; add.u32 %warp, %warp, %n; "
              "and.b32 %row, %i, 31; mul.lo.u32 %row, %row, 5; and.b32 %row, %row, 31; "
              "shl.b32 %row, %row, 4; add.u32 %row, %row, %warp;")
    fill = "st.shared.v4.b32 [%row], {%a, %b, %c, %a}; bar.warp.sync 0xffffffff;"
    for n in 1, 2, 4:
        for trans in "", ".trans":
            results = "{" + ", ".join(f"%d{i}" for i in range(n)) + "}" if n > 1 else "{%d}"
            forms.add(w, f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16", f"{'w' * n}:www",
                f"{shared} {fill} ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {results}, [%row];")
            values = "{" + ", ".join(["%a", "%b", "%c", "%i"][:n]) + "}"
            forms.add(w, f"stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16", "wwww:www",
                f"{shared} {fill} stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 [%row], {values}; "
                "bar.warp.sync 0xffffffff; ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%row];")
    forms.add(w, "movmatrix.sync.aligned.m8n8.trans.b16", "w:w")


def copies(forms: Forms) -> None:
    w = "matrix"
    shared = (".shared .align 128 .b8 sm[4096]; .reg .b32 %s; mov.u32 %s, sm; "
              "mad.lo.u32 %s, %i, 16, %s; st.shared.v4.b32 [%s], {%c, %c, %c, %c}; bar.sync 0; "
              "and.b32 %n, %i, 31; mad.wide.u32 %p, %n, 16, %pa;").replace(
                  ".reg .b32 %s;", ".reg .b32 %s, %n;")
    wait = "cp.async.commit_group; cp.async.wait_group 0;"
    load = "ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%s];"
    for how, bytes_ in ("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16):
        forms.add(w, f"cp.async.{how}.shared.global.{bytes_}", "wwww:www",
            f"{shared} cp.async.{how}.shared.global [%s], [%p], {bytes_}; {wait} {load}")
        forms.add(w, f"cp.async.{how}.shared.global.{bytes_}.zfill", "wwww:www",
            f"{shared} and.b32 %b, %b, {bytes_ - 1}; "
            f"cp.async.{how}.shared.global [%s], [%p], {bytes_}, %b; {wait} {load}")
        forms.add(w, f"cp.async.{how}.shared.global.{bytes_}.ignore", "wwww:www",
            f"{shared} setp.lt.s32 %x, %b, 0; "
            f"cp.async.{how}.shared.global [%s], [%p], {bytes_}, %x; cp.async.wait_all; {load}")
    forms.add(w, "cp.async.cg.shared.global.L2::128B.16", "wwww:www",
        f"{shared} cp.async.cg.shared.global.L2::128B [%s], [%p], 16; {wait} {load}")


# ---------------------------------------------------------------- writing
def kernel(number: int, form: Form) -> str:
    name, signature, tolerance, text = form
    outs, ins = signature.split(":")
    lines = [f"// form {name} | {signature} | {tolerance} | {' '.join(text.split())}",
             f".visible .entry f_{number}(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c)",
             "{", "  .reg .b64 %p, %q, %po, %pa, %pb, %pc; .reg .b32 %i, %w; .reg .pred %x, %y;"]
    lines.append("  mov.u32 %i, %tid.x; ld.param.u64 %po, [out]; ld.param.u64 %pa, [a]; "
                 "ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c];")
    for k, c in enumerate(outs):
        lines.append(f"  .reg .{REGISTER.get(c, 'b32')} %d{k if len(outs) > 1 else ''};")
    is_product = name.startswith("mma.")
    for operand, c in zip("abc", ins):
        if is_product:
            break
        lines.append(f"  .reg .{REGISTER.get(c, 'b32')} %{operand}; mad.wide.u32 %p, %i, "
                     f"{SIZE.get(c, 4)}, %p{operand}; ld.global.{REGISTER.get(c, 'b32')} %{operand}, [%p];")
    lines.append("  " + text)
    for k, c in enumerate(outs):
        register = f"%d{k if len(outs) > 1 else ''}"
        if c == "p":
            lines.append(f"  selp.b32 %w, 1, 0, {register};")
            register = "%w"
        lines.append(f"  mad.wide.u32 %p, %i, {SIZE.get(c, 4)}, %po; "
                     f"st.global.{'b32' if c == 'p' else REGISTER.get(c, 'b32')} [%p+{1024 * k}], {register};")
    lines += ["  ret;", "}"]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    forms = Forms()
    for make in integers, bits, floats, halves, conversions, comparisons, memory, warps, matrices:
        make(forms)
    number = 0
    for file, rows_ in forms.files.items():
        text = "// SPDX-License-Identifier: Apache-2.0\n// Written by make_forms.py.\n"
        text += ".version 8.7\n.target sm_90a\n.address_size 64\n"
        for form in rows_:
            text += "\n" + kernel(number, form) + "\n"
            number += 1
        (HERE / f"{file}.ptx").write_text(text)
    print(f"{number} forms in {len(forms.files)} files")
    return check(forms, arguments[1]) if arguments[:1] == ["--check"] else 0


def check(forms: Forms, ptxas: str) -> int:
    """Assembles every kernel by itself and names those that the assembler refuses."""
    bad = 0
    for file in forms.files:
        parts = (HERE / f"{file}.ptx").read_text().split("\n// form ")
        with tempfile.TemporaryDirectory() as folder:
            whole = subprocess.run([ptxas, "-arch=sm_90a", "-O0", "-o", f"{folder}/a.cubin", HERE / f"{file}.ptx"],
                                   capture_output=True, text=True, check=False)
            if whole.returncode == 0:
                continue
            for part in parts[1:]:
                path = Path(folder) / "one.ptx"
                path.write_text(parts[0] + "\n// form " + part)
                run = subprocess.run([ptxas, "-arch=sm_90a", "-O0", "-o", f"{folder}/a.cubin", path],
                                     capture_output=True, text=True, check=False)
                if run.returncode:
                    bad += 1
                    print(part.split("\n")[0][:90], "\n   ", run.stderr.strip().split("\n")[0][-150:])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
