#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tensor copies of tma_h200.json on a Hopper GPU and records what they leave in memory.

Usage: tma_truth.py OUT.json [FIRST]

Needs Python and the CUDA driver only. Each case is one copy by a kernel of tma.ptx, between a tensor of
64 KiB and shared memory; `crc` is the checksum of all shared memory (after a load) or of the tensor. A copy
that the GPU refuses as an illegal instruction ends the process, so the script then runs itself again from the
next case on.
"""
from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SHARED, TENSOR, RANKS = 32768, 1 << 16, 5
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
AGAIN = 7


def pattern(mask: int) -> bytes:
    out = []
    for i in range(0, TENSOR, 4):
        v = (i * 0x85EBCA6B + 777) & 0xFFFFFFFF
        out.append((v ^ (v >> 13)) & mask)
    return struct.pack(f"<{len(out)}I", *out)


def encode(cu: ctypes.CDLL, case: dict[str, Any], address: int) -> tuple[Any, Any]:
    """The driver's 128 bytes; the space around them keeps them aligned."""
    rank = len(case["dims"])
    space = ctypes.create_string_buffer(256)
    at = (ctypes.addressof(space) + 127) // 128 * 128

    def words(kind: Any, values: Sequence[int]) -> Any:
        return (kind * RANKS)(*values, *[1] * (RANKS - len(values)))
    status = cu.cuTensorMapEncodeTiled(
        ctypes.c_void_p(at), case["type"], rank, ctypes.c_void_p(address), words(ctypes.c_uint64, case["dims"]),
        words(ctypes.c_uint64, case["strides"]), words(ctypes.c_uint32, case["box"]),
        words(ctypes.c_uint32, case["steps"]), 0, case["swizzle"], 2, case["fill"])
    assert status == 0, f"the driver refuses the map of {case}: {status}"
    return space, (ctypes.c_char * 128).from_address(at)


def run(first: int, out: Path) -> None:
    cu = ctypes.CDLL("libcuda.so.1")

    def ok(status: int) -> None:
        assert status == 0, status
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    ok(cu.cuInit(0))
    ok(cu.cuDeviceGet(ctypes.byref(device), 0))
    ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    ok(cu.cuCtxSetCurrent(context))
    ok(cu.cuModuleLoadData(ctypes.byref(module), (HERE / "tma.ptx").read_bytes() + b"\0"))
    tensor, got = ctypes.c_uint64(), ctypes.c_uint64()
    ok(cu.cuMemAlloc_v2(ctypes.byref(tensor), TENSOR))
    ok(cu.cuMemAlloc_v2(ctypes.byref(got), SHARED + 4))
    for case in json.loads((HERE / "tma_h200.json").read_text())[first:]:
        load = case["kind"] == "load"
        case = {key: value for key, value in case.items() if key not in ("crc", "illegal")}
        ok(cu.cuMemcpyHtoD_v2(tensor, pattern(0xFFFFFFFF if load else case["bytes"]), TENSOR))
        function = ctypes.c_void_p()
        ok(cu.cuModuleGetFunction(ctypes.byref(function), module, f"{case['kind']}{len(case['dims'])}".encode()))
        ok(cu.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, SHARED + 16))
        space, encoded = encode(cu, case, tensor.value)
        coords = [c & 0xFFFFFFFF for c in case["coords"]] + [0] * (RANKS - len(case["coords"]))
        args = [encoded, got, *[ctypes.c_uint32(c) for c in coords], ctypes.c_uint32(case["at"]),
                ctypes.c_uint32(case["bytes"]), *[ctypes.c_uint16(0)] * 3]
        pointers = (ctypes.c_void_p * len(args))(*[ctypes.addressof(a) for a in args])
        ok(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, SHARED + 16, None, pointers, None))
        illegal = cu.cuCtxSynchronize() != 0
        if illegal:
            case["illegal"] = True
        else:
            result = ctypes.create_string_buffer(SHARED if load else TENSOR)
            ok(cu.cuMemcpyDtoH_v2(result, got if load else tensor, len(result)))
            case["crc"] = zlib.crc32(result.raw)
        del space
        with open(out, "a", encoding="utf-8") as f:
            f.write(json.dumps(case, separators=(",", ":")) + "\n")
        if illegal:
            os._exit(AGAIN)


def main() -> None:
    out = Path(sys.argv[1])
    if len(sys.argv) > 2:
        return run(int(sys.argv[2]), out)
    out.write_text("")
    while True:
        done = len(out.read_text().splitlines())
        if subprocess.run([sys.executable, __file__, out, str(done)], check=False).returncode != AGAIN:
            break
    out.write_text("[\n" + ",\n".join(out.read_text().splitlines()) + "\n]\n")


main()
