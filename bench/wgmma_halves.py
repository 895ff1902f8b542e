#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the wgmma engine for bfloat16 products and cuBLAS, for each layout, tile and way to load.

    python3 bench/wgmma_halves.py CUTLASS_INCLUDE

Needs a Hopper GPU, nvcc and PyTorch. Prints Markdown tables: cuBLAS's time with a cold L2 cache (the median of 15
launches), and cuBLAS's time divided by the engine's. A layout names the contiguous axis of A and of B; k is the depth.
x2 uses clusters of two CTAs, `address` loads without tensor maps.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
from wgmma_products import Engine, engine, laid_out, median_ms

ROOT = Path(__file__).resolve().parents[1]
SIZES = (
    (4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096), (4096, 4096, 14336), (8192, 1024, 8192),
    (2048, 2048, 2048), (1024, 1024, 1024), (512, 4096, 4096), (128, 4096, 4096), (64, 8192, 8192),
)


class Config(NamedTuple):
    layout: str
    m: int
    n: int
    stages: int
    cluster: int
    tma: bool = True
    persistent: bool = True

    def name(self) -> str:
        return (f"{self.layout} {self.m}x{self.n}" + ("" if self.cluster == 1 else "x2")
                + ("" if self.tma else " address") + f" {self.stages} stages" + ("" if self.persistent else " once"))


CONFIGS = (
    Config("kk", 128, 256, 4, 1), Config("kk", 128, 256, 4, 1, persistent=False), Config("kk", 128, 256, 4, 2),
    Config("kk", 256, 128, 4, 1), Config("kk", 128, 128, 3, 1), Config("kk", 128, 128, 6, 1),
    Config("kk", 128, 64, 4, 1), Config("kk", 128, 64, 8, 1), Config("kk", 64, 256, 5, 1), Config("kk", 64, 128, 8, 1),
    Config("kk", 64, 64, 6, 1), Config("kk", 64, 64, 12, 1), Config("kk", 128, 256, 4, 1, False),
    Config("kk", 128, 128, 6, 1, False), Config("kn", 128, 256, 4, 1), Config("mn", 128, 256, 4, 1),
)


def build(folder: Path, include: str, config: Config) -> tuple[Path, subprocess.Popen[str]]:
    library = folder / f"{config.name().replace(' ', '_')}.so"
    defines = {"A_DEPTH": config.layout[0] == "k", "B_DEPTH": config.layout[1] == "k", "TILE_M": config.m,
               "TILE_N": config.n, "STAGES": config.stages, "CLUSTER": config.cluster, "USE_TMA": config.tma,
               "PERSISTENT": config.persistent}
    command = ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-O3", "-std=c++17",
               "--expt-relaxed-constexpr", "-shared", "-Xcompiler", "-fPIC", "-diag-suppress=174,177",
               f"-I{ROOT / 'include'}", f"-I{include}",
               *[f"-D{name}={int(value)}" for name, value in defines.items()], "-o", str(library),
               str(ROOT / "bench/wgmma_halves.cu")]
    return library, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def compare(engines: dict[Config, Engine]) -> None:
    flush = torch.empty(64 << 20, device="cuda")
    print("| m x n x k | cuBLAS, us | TFLOP/s | " + " | ".join(config.name() for config in engines) + " |")
    print("|---|---|---|" + "---|" * len(engines))
    for m, n, k in SIZES:
        a = torch.randn(m, k, device="cuda").bfloat16()
        b = torch.randn(k, n, device="cuda").bfloat16()
        truth = (a.float() @ b.float())
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        base: dict[str, float] = {}
        cells = []
        for config, run in engines.items():
            own_a, own_b = laid_out(a, config.layout[0] == "m"), laid_out(b, config.layout[1] == "k")
            if config.layout not in base:
                left = own_a.t() if config.layout[0] == "m" else own_a
                right = own_b.t() if config.layout[1] == "k" else own_b
                base[config.layout] = median_ms(lambda: left @ right, flush)
            ratio = base[config.layout] / median_ms(lambda: run(own_a, own_b, out), flush)
            wrong = (out.float() - truth).abs().max() > 0.01 * truth.abs().max()
            cells.append("wrong" if wrong else f"{ratio:.2f}")
        flops = 2e-9 * m * n * k / base["kk"]
        print(f"| {m} x {n} x {k} | {base['kk'] * 1e3:.0f} | {flops:.0f} | " + " | ".join(cells) + " |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cutlass_include")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        jobs = {config: build(Path(folder), options.cutlass_include, config) for config in CONFIGS}
        engines = {}
        for config, (library, job) in jobs.items():
            messages = job.communicate()[1]
            if job.returncode != 0:
                print(messages, file=sys.stderr)
                return 1
            engines[config] = engine(library)
        compare(engines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
