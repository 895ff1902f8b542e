#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs cutegen into one folder that runs on any x86-64 Linux with Python, torch and a GPU driver.

Usage: bundle.py [--bin DIR] [--wheels DIR] [--out DIR] [--limit-mb N]

  bin/       one small script per program, which starts the program with the bundle's own loader
  lib/       the loader, the C library, and every library that the programs need
  libexec/   the programs, stripped
  include/   cutegen's device headers        headers/  CuTe, CUDA and C++ headers that kernels reach
  python/    the torch worker                tasks/    the shipped tasks

The programs contain recipes, prompts, prices, GPU files and schemas. NVRTC is not packed; it comes from the machine's
Python, its CUDA toolkit or $CUTEGEN_NVRTC (docs/bundle.md).
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("cutegen", "cutegen-evaluator", "cutegen-runner", "cutegen-compiler")
THREAD_NAMES = "cutegen-thread-names.so"
GATE = "cutegen-gate.so"  # loaded into the host's ptxas and nvdisasm; needs no library of the bundle
LOADER = "ld-linux-x86-64.so.2"
# Stubs of the C library for NVRTC and the driver, which were built for older C libraries.
OLD_NAMES = ("libdl.so.2", "libpthread.so.0", "librt.so.1")
# The headers that programs may include (prompts/system.md). headers/ also has the headers that these include.
ROOTS = ("cute/**/*", "cutlass/*.h", "cutlass/arch/**/*", "cutlass/pipeline/**/*", "cub/block/*",
         "cub/warp/*", "cuda/std/*", "cuda/*", "cuda_bf16.h", "cuda_fp*.h", "cuda_pipeline*.h",
         "cuda_awbarrier*.h", "cooperative_groups.h", "cooperative_groups/*", "mma.h",
         "math_constants.h", "vector_functions.h", "vector_types.h")
# Shapes of wgmma that are off by default; they are a third of CuTe's size.
LEFT_OUT = re.compile(r"_ext\.hpp$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<"]([^">]+)[">]'
                     r'|_CCCL_\w*INCLUDE\w*\([ \t]*[<"]?([^()<>"]+)', re.MULTILINE)
SCRIPT = """#!/bin/sh
# Starts {name} with the libraries of this folder, wherever it lies.
self=$0
while [ -L "$self" ]; do
  to=$(readlink "$self")
  case $to in /*) self=$to ;; *) self=${{self%/*}}/$to ;; esac
done
case $self in */*) ;; *) self=./$self ;; esac
root=$(cd "${{self%/*}}/.." && pwd -P)
exec "$root/lib/{loader}" --library-path "$root/lib" --argv0 "$0" "$root/libexec/{name}" "$@"
"""
READ_ME = """cutegen, packed for machines on which it was not built.

  bin/cutegen doctor                          what this machine has and lacks
  bin/cutegen optimize tasks/softmax.py       a kernel for a PyTorch module
  ... --device cuda:0                         on the GPU

Needed: x86-64 Linux, Python 3.10 or later with torch (--python PATH or CUTEGEN_PYTHON), NVRTC (torch's
own, a CUDA toolkit's, or CUTEGEN_NVRTC) and, for cuda: devices, NVIDIA's driver. The folder may lie
anywhere. licences/ holds the terms of what is not cutegen's own.
"""


def fail(message: str) -> NoReturn:
    sys.exit(f"bundle: error: {message}")


def run(*command: str | Path) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        fail(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return result.stdout


def libraries(programs: list[Path]) -> dict[str, Path]:
    """The files of the libraries that the programs need, by the requested name."""
    found = {}
    for program in programs:
        for line in run("ldd", program).splitlines():
            match = re.match(r"\s*(?:(\S+) => )?(/\S+) \(", line)
            if match:
                found[Path(match[1] or match[2]).name] = Path(match[2])
    if LOADER not in found:
        fail(f"the programs do not use {LOADER}: only x86-64 with glibc can be packed")
    home = found["libc.so.6"].parent
    for name in OLD_NAMES:
        found.setdefault(name, home / name)
    return found


def header_folders(wheels: Path) -> list[tuple[str, Path]]:
    """The folders of headers, in the order of the compiler's search: (name in the bundle, path)."""
    cutlass = wheels / "cutlass_library/source/include"
    runtime = next(iter(sorted(wheels.glob("nvidia/*/include/cuda_fp16.h"))), None)
    cccl = next(iter(sorted(wheels.glob("nvidia/*/include/cccl/cuda/std/cstdint"))), None)
    if not (cutlass / "cute/tensor.hpp").exists() or not runtime or not cccl:
        fail(f"CuTe, CUDA or C++ headers are missing in {wheels}: run make setup")
    return [("cutlass", cutlass), ("cuda", runtime.parent), ("cuda/cccl", cccl.parents[2])]


def closure(folders: list[tuple[str, Path]]) -> list[tuple[str, Path, Path]]:
    """The headers that ROOTS reach, as (folder's name, path below it, file)."""
    ours = {path.name for path in (ROOT / "include/cutegen_shims").iterdir()}

    def place(path: Path) -> tuple[str, Path]:
        # Take the innermost folder, because cccl lies inside cuda's folder.
        name, base = max(((n, f) for n, f in folders if f in path.parents), key=lambda e: len(str(e[1])))
        return name, path.relative_to(base)

    seen, todo = {}, []
    for pattern in ROOTS:
        for _, folder in folders:
            todo += [path for path in folder.glob(pattern) if path.is_file()]
    while todo:
        path = Path(os.path.normpath(todo.pop()))
        if path in seen or LEFT_OUT.search(path.name):
            continue
        name, inner = place(path)
        if str(inner) in ours:
            continue  # cutegen's own header comes first
        seen[path] = (name, inner)
        for match in INCLUDE.finditer(path.read_text(encoding="utf-8", errors="replace")):
            wanted = (match[1] or match[2]).strip()
            for base in [path.parent] + [folder for _, folder in folders]:
                if (base / wanted).is_file():
                    todo.append(base / wanted)
    return [(name, inner, path) for path, (name, inner) in seen.items()]


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def pack_programs(binaries: Path, out: Path) -> Iterable[Path]:
    programs = [binaries / name for name in PROGRAMS]
    for program in programs + [binaries / THREAD_NAMES]:
        if not program.exists():
            fail(f"no program {program}: build it first (make programs)")
    packed = {name: path.resolve() for name, path in libraries(programs).items()}
    for name, path in packed.items():
        copy(path, out / "lib" / name)
    (out / "lib" / LOADER).chmod(0o755)
    for program in programs:
        target = out / "libexec" / program.name
        target.parent.mkdir(parents=True, exist_ok=True)
        run("strip", "-o", target, program)
        script = out / "bin" / program.name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(SCRIPT.format(name=program.name, loader=LOADER), encoding="utf-8")
        script.chmod(0o755)
    # Loaded into a Python of the machine, so it needs only an old C library and stays in bin/.
    copy(binaries / THREAD_NAMES, out / "bin" / THREAD_NAMES)
    run("strip", "-o", out / "bin" / GATE, binaries / GATE)
    return packed.values()


def pack_licences(wheels: Path, packed: Iterable[Path], out: Path) -> None:
    copy(ROOT / "LICENSE", out / "LICENSE")
    for package in ("nvidia_cutlass", "nvidia_cuda_runtime", "nvidia_cuda_cccl"):
        for info in sorted(wheels.glob(f"{package}-*.dist-info")):
            for path in sorted(info.rglob("*")):
                if re.match(r"(?i)licen[cs]e|copying|notice", path.name) and path.is_file():
                    copy(path, out / "licences" / package / path.name)
    names = sorted({name for path in packed for name in (str(path), str(path).removeprefix("/usr"))})
    owners = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True, check=False)
    for package in sorted({line.split(":", 1)[0] for line in owners.stdout.splitlines()}):
        terms = Path("/usr/share/doc") / package / "copyright"
        if terms.exists():
            copy(terms, out / "licences" / package / "copyright")


def pack(binaries: Path, wheels: Path, out: Path) -> None:
    packed = pack_programs(binaries, out)
    for name, inner, path in closure(header_folders(wheels)):
        copy(path, out / "headers" / name / inner)
    for name in ("include", "python", "tasks"):
        shutil.copytree(ROOT / name, out / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    pack_licences(wheels, packed, out)
    (out / "README").write_text(READ_ME, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--wheels", type=Path, help="site-packages with the headers")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bundle/cutegen")
    parser.add_argument("--limit-mb", type=float, default=60)
    options = parser.parse_args()
    wheels = options.wheels or next(iter(sorted(ROOT.glob(".venv/lib/python3*/site-packages"))), None)
    if not wheels:
        fail("no .venv: run make setup, or name a folder of wheels")
    fresh = options.out.with_name(options.out.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    pack(options.bin, wheels, fresh)
    size = sum(path.stat().st_size for path in fresh.rglob("*") if path.is_file()) / 1e6
    if size > options.limit_mb:
        fail(f"{fresh} has {size:.1f} MB; the limit is {options.limit_mb:g}")
    shutil.rmtree(options.out, ignore_errors=True)
    fresh.rename(options.out)
    print(f"bundle: {options.out}: {size:.1f} MB")


if __name__ == "__main__":
    main()
