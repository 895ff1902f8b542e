#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the wgmma engine for float32 products and cuBLAS, and compares their errors.

    python3 bench/wgmma_products.py CUTLASS_INCLUDE

Needs a Hopper GPU, nvcc and PyTorch. Prints Markdown tables: times with a cold L2 cache, medians of 15
launches, for every layout and tile; then errors relative to sum(|a| * |b|) for five input distributions.
A layout names the contiguous axis of A and of B: k is the depth.
"""
from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
LAYOUTS = ("kn", "kk", "mk", "mn")
TILES = ((128, 128), (128, 64), (64, 128), (64, 64))
SIZES = (
    (4096, 4096, 4096), (8192, 8192, 8192), (1024, 8192, 8192), (1024, 1024, 1024), (512, 512, 512),
    (2048, 2048, 256), (2048, 2048, 64), (128, 4096, 4096), (64, 8192, 1024), (1020, 4100, 2052),
)
Engine = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]


def build(folder: Path, include: str, layout: str, tile: tuple[int, int]) -> tuple[Path, subprocess.Popen[str]]:
    library = folder / f"{layout}_{tile[0]}x{tile[1]}.so"
    defines = {"A_DEPTH": layout[0] == "k", "B_DEPTH": layout[1] == "k", "TILE_M": tile[0], "TILE_N": tile[1],
               "STAGES": 4}
    command = ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-O3", "-std=c++17",
               "--expt-relaxed-constexpr", "-shared", "-Xcompiler", "-fPIC", f"-I{ROOT / 'include'}", f"-I{include}",
               *[f"-D{name}={int(value)}" for name, value in defines.items()], "-o", str(library),
               str(ROOT / "bench/wgmma_tiles.cu")]
    return library, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def engine(library: Path) -> Engine:
    launch = ctypes.CDLL(str(library)).launch

    def run(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (a, b, out)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        (m, n), k = out.shape, a.numel() // out.shape[0]
        if launch(*pointers, m, n, k, stream) != 0:
            raise RuntimeError("the launch failed")

    return run


def median_ms(call: Callable[[], object], flush: torch.Tensor) -> float:
    times = []
    for turn in range(17):
        flush.fill_(1.0)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if turn >= 2:
            times.append(start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def laid_out(matrix: torch.Tensor, transposed: bool) -> torch.Tensor:
    return matrix.t().contiguous() if transposed else matrix


def speeds(engines: dict[str, Engine]) -> None:
    flush = torch.empty(64 << 20, device="cuda")
    print("| m x n x k | cuBLAS, us | " + " | ".join(engines) + " |")
    print("|---|---|" + "---|" * len(engines))
    for m, n, k in SIZES:
        a, b = torch.rand(m, k, device="cuda"), torch.rand(k, n, device="cuda")
        out = torch.empty(m, n, device="cuda")
        base = median_ms(lambda: a @ b, flush)
        cells = []
        for name, run in engines.items():
            own_a, own_b = laid_out(a, name[0] == "m"), laid_out(b, name[1] == "k")
            cells.append(f"{base / median_ms(lambda: run(own_a, own_b, out), flush):.2f}")
        print(f"| {m} x {n} x {k} | {base * 1e3:.0f} | " + " | ".join(cells) + " |", flush=True)


def drawn(kind: str, size: int) -> torch.Tensor:
    x = torch.randn(size, size, device="cuda")
    if kind == "uniform":
        return torch.rand(size, size, device="cuda")
    if kind == "heavy":
        return x * torch.exp(2 * torch.randn(size, size, device="cuda"))
    if kind == "shifted":
        return x + 10
    if kind == "scaled rows":
        return x * torch.exp(4 * torch.randn(size, 1, device="cuda"))
    return x


def errors(run: Engine) -> None:
    print("\n| inputs | size | max, of cuBLAS's | mean, of cuBLAS's | mean error |")
    print("|---|---|---|---|---|")
    for size in (4096, 8192):
        for kind in ("uniform", "normal", "heavy", "shifted", "scaled rows"):
            a, b = drawn(kind, size), drawn(kind, size)
            out, truth = torch.empty_like(a), a.double() @ b.double()
            scale = a.double().abs() @ b.double().abs()
            run(a, b, out)
            ours, theirs = (((c.double() - truth).abs() / scale) for c in (out, a @ b))
            most, mean = ours.max() / theirs.max(), ours.mean() / theirs.mean()
            print(f"| {kind} | {size} | {most:.2f} | {mean:.2f} | {ours.mean():.2e} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cutlass_include")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        jobs = {f"{layout} {m}x{n}": build(Path(folder), options.cutlass_include, layout, (m, n))
                for layout in LAYOUTS for m, n in TILES}
        engines = {}
        for name, (library, job) in jobs.items():
            messages = job.communicate()[1]
            if job.returncode != 0:
                print(messages, file=sys.stderr)
                return 1
            engines[name] = engine(library)
        speeds(engines)
        errors(engines["kn 128x128"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
