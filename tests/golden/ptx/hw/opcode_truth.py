#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the kernels of this folder on the GPU and records what they give.

Usage: opcode_truth.py OUT.bin [DEVICE]

Needs Python and the CUDA driver only. Inputs are pools of 128 values for each letter of make_forms.py and
each operand, made here from a fixed seed, with the special values of each type in between. OUT.bin is one
line of JSON (device, driver, `pools` and `forms`: name -> [offset, bytes] behind that line), then the bytes.
Forms that the driver refuses or that fault are named in `refused`.
"""
from __future__ import annotations

import ctypes
import json
import math
import random
import struct
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
THREADS = 128
OUT_BYTES = 1 << 16
SIZE = {"h": 2, "H": 2, "G": 2, "q": 2, "d": 8, "F": 8, "z": 8}
FORM = "// form "


# ---------------------------------------------------------------- inputs
def half(value: float) -> int:
    return struct.unpack("<H", struct.pack("<e", value))[0]


def bfloat(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


WORDS = [0, 1, 2, 31, 32, 33, 63, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x8000, 0x7F, 0x80, 0xFF80]
LONGS = [0, 1, 63, 64, 2**63 - 1, 2**63, 2**64 - 1, 2**32 - 1, 2**32, 2**53 + 1, 2**64 - 2**10]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-40, -1e-45, 3.4028234663852886e38, 2147483648.0,
          -2147483648.0, 4294967296.0, 65504.0, 65519.0, 65520.0, 6e-8, 3e-8, 448.0, 464.0, 465.0, 57344.0, 61440.0,
          0.001953125, 0.0009765625, 1.52587890625e-05, 127.5, 255.5, -0.5, 1.1754943508222875e-38]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 1e300, 5e-324, 2.0**63, 2.0**32, 1e-40, 65520.0, -(2.0**63),
           3.4028235677973366e38, 2.2250738585072014e-308, 1e-310, 127.5, 1 + 2.0**-30]
HALVES = [0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x3800,
          0x8001, 0x83FF]
BFLOATS = [0x0000, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0x0001, 0x007F, 0x0080, 0x7F7F, 0xFF7F, 0x3F00]
E4M3 = {0: 0x00, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48, 5: 0x4A, 6: 0x4C, 7: 0x4E}
E5M2 = {0: 0x00, 1: 0x3C, 2: 0x40, 3: 0x42, 4: 0x44, 5: 0x45, 6: 0x46, 7: 0x47}


def as_bits(kind: str, value: float) -> int:
    return int.from_bytes(struct.pack(kind, value), "little")


def one_half(rng: random.Random) -> int:
    if rng.random() < 0.4:
        return rng.choice(HALVES)
    return half(rng.uniform(-1, 1) * 2.0 ** rng.randint(-16, 10)) if rng.random() < 0.7 else rng.getrandbits(16)


def one_bfloat(rng: random.Random) -> int:
    if rng.random() < 0.4:
        return rng.choice(BFLOATS)
    return bfloat(rng.uniform(-1, 1) * 2.0 ** rng.randint(-16, 10)) if rng.random() < 0.7 else rng.getrandbits(16)


def small(rng: random.Random, most: int = 8) -> int:
    return rng.randint(-most, most)


def packed_fp8(rng: random.Random, table: dict[int, int]) -> int:
    out = 0
    for i in range(4):
        value = small(rng, 5 if table is E5M2 else 7)  # e5m2 has no 7 bits to spare beyond it
        out |= (table[abs(value)] | (0x80 if value < 0 else 0)) << (8 * i)
    return out


def element(letter: str, rng: random.Random) -> int:
    """One value of a pool, as an integer of the letter's size."""
    special = rng.random() < 0.35
    if letter == "h":
        return rng.getrandbits(16) if not special else rng.choice(WORDS) & 0xFFFF
    if letter == "w":
        return rng.choice(WORDS) if special else rng.getrandbits(32) >> rng.randint(0, 31)
    if letter == "d":
        return rng.choice(LONGS) if special else rng.getrandbits(64) >> rng.randint(0, 63)
    if letter == "s":
        return rng.randint(0, 40) if rng.random() < 0.8 else rng.choice([63, 64, 65, 100, 255])
    if letter in "fF":
        kind = "<f" if letter == "f" else "<d"
        if special:
            nonfinite = [math.inf, -math.inf, math.nan]
            return as_bits(kind, rng.choice((FLOATS if letter == "f" else DOUBLES) + nonfinite))
        if rng.random() < 0.2:
            return rng.getrandbits(32 if letter == "f" else 64)
        return as_bits(kind, rng.uniform(-1, 1) * 2.0 ** rng.randint(-20, 20))
    if letter == "o":
        return as_bits("<f", rng.choice([0.0, 1.0, -1.0, 3.0]) if rng.random() < 0.1 else rng.uniform(-3.1, 3.1))
    if letter == "H":
        return one_half(rng)
    if letter == "G":
        return one_bfloat(rng)
    if letter in "xy":
        one = one_half if letter == "x" else one_bfloat
        return one(rng) | one(rng) << 16
    if letter == "q":
        return rng.getrandbits(16)
    if letter in "MNT":
        one = {"M": half, "N": bfloat, "T": lambda x: as_bits("<f", x)}[letter]
        return one(rng.uniform(-1, 1)) if letter == "T" else one(rng.uniform(-1, 1)) | one(rng.uniform(-1, 1)) << 16
    return exact(letter, rng)


def exact(letter: str, rng: random.Random) -> int:
    """Small integers, whose products and sums are exact in every order."""
    if letter == "m":
        return half(small(rng)) | half(small(rng)) << 16
    if letter == "n":
        return bfloat(small(rng)) | bfloat(small(rng)) << 16
    if letter == "t":
        return as_bits("<f", small(rng, 100))
    if letter == "z":
        return as_bits("<d", small(rng, 1000))
    return packed_fp8(rng, E4M3 if letter == "u" else E5M2)


def make_pools() -> dict[str, bytes]:
    rng = random.Random(20)
    pools = {}
    for letter in "hwdsfFoHGxyqmntzuvMNT":
        for operand in "abc":
            size = SIZE.get(letter, 4)
            pools[letter + operand] = b"".join(element(letter, rng).to_bytes(size, "little") for _ in range(THREADS))
    return pools


# ---------------------------------------------------------------- the driver
class Refused(Exception):
    pass


class Gpu:
    def __init__(self, ordinal: int) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), ordinal)
        self.start()

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.cuda, name)(*arguments)
        if code:
            raise Refused(f"{name}: error {code}")

    def start(self) -> None:
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        self.memory: dict[str, ctypes.c_uint64] = {}

    def restart(self) -> None:
        self.cuda.cuDevicePrimaryCtxReset_v2(self.device)
        self.start()

    def name(self) -> str:
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        return text.value.decode()

    def driver(self) -> int:
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def buffer(self, key: str, data: bytes) -> ctypes.c_uint64:
        if key not in self.memory:
            pointer = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(len(data), 4096)))
            self.memory[key] = pointer
        self.call("cuMemcpyHtoD_v2", self.memory[key], data, ctypes.c_size_t(len(data)))
        return self.memory[key]

    def load(self, text: str) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text.encode()))
        return module

    def run(self, module: ctypes.c_void_p, entry: str, pointers: list[ctypes.c_uint64]) -> None:
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        slots = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.pointer(p), ctypes.c_void_p) for p in pointers])
        self.call("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, slots, None)
        self.call("cuCtxSynchronize")

    def read(self, pointer: ctypes.c_uint64, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, pointer, ctypes.c_size_t(size))
        return data.raw


def results(outs: str, data: bytes) -> bytes:
    """The recorded bytes of a form: result after result; predicates as one bit a thread."""
    kept = b""
    for k, letter in enumerate(outs):
        at, size = 1024 * k, SIZE.get(letter, 4)
        part = data[at:at + THREADS * size]
        if letter == "p":
            bits = sum((part[4 * i] & 1) << i for i in range(THREADS))
            part = bits.to_bytes(THREADS // 8, "little")
        kept += part
    return kept


def main(arguments: list[str]) -> int:
    gpu = Gpu(int(arguments[1]) if len(arguments) > 1 else 0)
    pools, body = make_pools(), b""
    index: dict[str, list[int]] = {}
    forms: dict[str, list[int]] = {}
    refused: dict[str, str] = {}
    for key, data in pools.items():
        index[key] = [len(body), len(data)]
        body += data
    for path in sorted(HERE.glob("*.ptx")):
        head, *parts = path.read_text().split("\n" + FORM)
        for part in parts:
            name, signature = [x.strip() for x in part.split("|")[:2]]
            outs, ins = signature.split(":")
            entry = part.split(".entry ")[1].split("(")[0]
            try:
                module = gpu.load(head + "\n" + FORM + part)
                pointers = [gpu.buffer("out", bytes(OUT_BYTES))]
                for operand, letter in zip("abc", (ins + "www")[:3]):
                    pointers.append(gpu.buffer(operand, pools[letter + operand]))
                gpu.run(module, entry, pointers)
                kept = results(outs, gpu.read(pointers[0], OUT_BYTES))
                gpu.call("cuModuleUnload", module)
            except Refused as error:
                refused[name] = str(error)
                gpu.restart()
                continue
            forms[name] = [len(body), len(kept)]
            body += kept
    header = {"device": gpu.name(), "driver": gpu.driver(), "pools": index, "forms": forms, "refused": refused}
    Path(arguments[0]).write_bytes(json.dumps(header).encode() + b"\n" + body)
    print(f"{len(forms)} forms on {gpu.name()}, {len(refused)} refused: {json.dumps(refused)[:2000]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
