#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures everything in docs/measurements that needs a GPU: a list of jobs for each GPU of a host.

Usage: gpu_lanes.py BUNDLE OUT --kernelbench DIR LANE... [--gpus N]
       LANE: jobs for one GPU, one after the other, as JOB[:SECONDS],...; lane N uses GPU N, '-' skips it

BUNDLE is the folder that `make bundle` writes, DIR a checkout of KernelBench (github.com/ScalingIntelligence).
A lane sees only its GPU (CUDA_VISIBLE_DEVICES) and has its own home, so its search can use the baselines that its suite
job kept. A job's output goes to OUT/JOB.json and OUT/JOB.log, with its data beside them. A job that exceeds its seconds
is ended with all its processes, and the next one begins.
"""
from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import gpu_exports

HERE = Path(__file__).resolve().parent
TREE = HERE.parent
PROFILED = ("12_Matmul_with_diagonal_matrices_", "40_LayerNorm", "88_MinGPTNewGelu", "95_CrossEntropyLoss",
            "23_Softmax", "47_Sum_reduction_over_a_dimension", "1_Square_matrix_multiplication_", "26_GELU_")
OPTIMIZED = ("softmax", "linear_gelu", "rmsnorm", "gelu_bias")
OPTIMIZED_OF_KB = ("level1/88_MinGPTNewGelu", "level1/40_LayerNorm", "level1/1_Square_matrix_multiplication_")
EXPORTED = ("level1/12_Matmul_with_diagonal_matrices_", "level1/40_LayerNorm")

AGAIN = ("matmul",)  # of exports2


class Job:
    """The names that the commands of a job may use."""

    def __init__(self, name: str, seconds: float, options: argparse.Namespace) -> None:
        self.name, self.seconds, self.python = name, seconds, sys.executable
        self.bin, self.cutegen = options.bundle / "bin", options.bundle / "bin/cutegen"
        self.kernelbench, self.out = options.kernelbench, options.out
        self.recipes, self.warm_bench = options.out / "recipes", options.warm_bench
        self.older_nvrtc = options.older_nvrtc

    def data(self, ending: str) -> Path:
        return self.out / f"{self.name}{ending}"

    def level(self) -> str:
        return self.name[-1]

    def numbers(self, name: str) -> list[str]:
        return [n for n in [self.name.removeprefix(name)] if n]

    def task(self, stem: str) -> Path:
        return self.kernelbench / "KernelBench" / f"{stem}.py"

    def bench(self, script: str, *arguments: object) -> list[object]:
        return [self.python, HERE / script, *arguments]

    def suite(self) -> list[object]:
        return self.suite_of(self.level())

    def suite_of(self, level: str) -> list[object]:
        return [self.cutegen, "baselines", "--kernelbench", self.kernelbench / "KernelBench", "--levels", level,
                "--device", "cuda:0", "--python", self.python, "--minutes", f"{self.seconds / 60 - 0.2:.2f}", "--json"]

    def smoke(self) -> list[object]:
        return [*self.suite_of("1"), "--tasks", "19,40,50"]

    def search(self) -> list[object]:
        return [self.cutegen, "bench", "--kernelbench", self.kernelbench / "KernelBench", "--levels", self.level(),
                "--device", "cuda:0", "--python", self.python, "--model", "builtin", "--evaluations", "5",
                "--jobs", "1",
                "--runs", self.data(".runs"), "--out", self.data(""), *(["--resume"] if self.data("").exists() else [])]

    def honest(self) -> list[object]:
        return self.bench("gpu_drill.py", "honest", self.data(".jsonl"), "--times", "1000",
                          "--limit-s", self.seconds - 25,
                          "--seed", *(self.numbers("honest") or ["1"]))

    def faults(self) -> list[object]:
        return self.bench("gpu_drill.py", "faults", self.data(".jsonl"), "--limit-s", self.seconds - 15)

    def attacks(self) -> list[object]:
        return [self.python, TREE / "tests/e2e/attacks.py", "OnADevice", "--device", "cuda:0",
                "--out", self.data(".jsonl")]

    def foreign(self) -> list[object]:
        return self.bench("gpu_foreign.py", self.cutegen, self.data(""), "--python", self.python)

    def batch(self) -> list[object]:
        return self.bench("gpu_batch.py", self.cutegen, self.data(""), "--recipes", self.recipes,
                          "--python", self.python)

    def exports(self) -> list[object]:
        recipes = [f"recipe_{r}" for r in gpu_exports.RECIPES]
        names: Sequence[object] = [*gpu_exports.SIZES, *recipes, *(self.task(stem) for stem in EXPORTED)]
        if self.name != "exports":
            names = AGAIN
        return self.bench("gpu_exports.py", self.cutegen, TREE, self.data(".jsonl"), "--kernelbench", self.kernelbench,
                          "--certify", "--limit-s", self.seconds - 10, "--only", ",".join(map(str, names)))

    def profiles(self) -> list[object]:
        without = () if self.name == "profiles" else ("--without", TREE / "docs/measurements/h200_profiles.jsonl")
        return self.bench("gpu_profiles.py", self.bin, self.data(".jsonl"), "--jobs", "2",
                          "--limit-s", self.seconds - 20,
                          "--python", self.python, "--recipes", self.recipes,
                          *without,
                          "--more", *(self.task(f"level1/{stem}") for stem in PROFILED))

    def turnaround(self) -> list[object]:
        return self.bench("gpu_turnaround.py", self.bin, self.data(".jsonl"), "--recipes", self.recipes,
                          "--python", self.python)

    def optimize(self) -> list[object]:
        return self.bench("gpu_optimize.py", self.cutegen, self.data(".jsonl"), "--python", self.python, "--limit-s",
                          self.seconds - 10, *(TREE / f"tasks/{t}.py" for t in OPTIMIZED),
                          *map(self.task, OPTIMIZED_OF_KB))

    def older(self) -> list[object]:
        return self.bench("gpu_optimize.py", self.cutegen, self.data(".jsonl"), "--python", self.python, "--limit-s",
                          self.seconds - 10, *(TREE / f"tasks/{t}.py" for t in OPTIMIZED[:2]))

    def warm(self) -> list[object]:
        library = self.bin.parent / "lib"
        return [library / "ld-linux-x86-64.so.2", "--library-path", library, self.warm_bench, "3",
                *self.numbers("warm")]


# The method for each job's name, which a number (a level, a seed, a kernel) may follow.
JOBS = {"smoke": Job.smoke, "suite": Job.suite, "search": Job.search, "honest": Job.honest, "faults": Job.faults,
        "attacks": Job.attacks,
        "foreign": Job.foreign, "batch": Job.batch, "exports": Job.exports, "profiles": Job.profiles,
        "turnaround": Job.turnaround, "optimize": Job.optimize, "older": Job.older, "warm": Job.warm}


def run(job: Job, lane: int, cores: list[int], environment: dict[str, str]) -> None:
    """Runs one job. Ends it with all its processes when its seconds are over."""
    began = time.monotonic()
    if job.name == "older":
        environment = {**environment, "CUTEGEN_NVRTC": str(job.older_nvrtc)}
    if job.name == "warm":  # not in the bundle, but it needs the bundle's headers
        environment = {**environment, "CUTEGEN_SHARE": str(job.bin.parent)}
    command = [str(a) for a in JOBS[job.name.rstrip("0123456789")](job)]
    with open(job.data(".log"), "w", encoding="utf-8") as log, open(job.data(".json"), "w", encoding="utf-8") as out:
        log.write(shlex.join(command) + "\n")
        log.flush()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment,
                                   start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        try:
            told = f"exit {process.wait(timeout=job.seconds)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)  # lets cutegen write its results so far
            try:
                told = f"out of time, exit {process.wait(timeout=10)}"
            except subprocess.TimeoutExpired:
                told = "out of time, killed"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    print(f"lane {lane} {job.name:12} {time.monotonic() - began:6.1f} s  {told}", flush=True)


def run_lane(number: int, lane: str, options: argparse.Namespace) -> None:
    home = options.out / f"home{number}"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(number), "HOME": str(home),
                   "CUTEGEN_PYTHON": sys.executable,
                   "CUTEGEN_BIN": str(options.bundle / "bin"), "CUTEGEN_LOG": "info",
                   "XDG_CACHE_HOME": str(home / "cache")}
    every = sorted(os.sched_getaffinity(0))
    each = len(every) // options.gpus
    cores = every[number * each:(number + 1) * each]
    for part in lane.split(","):
        name, _, seconds = part.partition(":")
        run(Job(name, int(seconds or 600), options), number, cores, environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("lanes", nargs="+",
                        help="JOB[:SECONDS],... for each GPU; '-' for none. Jobs: " + ", ".join(JOBS))
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--warm-bench", type=Path, help="the program of bench/warm.cpp, for the job warm")
    parser.add_argument("--older-nvrtc", type=Path, help="libnvrtc.so.12 below an nvidia/ folder, for the job older")
    parser.add_argument("--gpus", type=int, default=0,
                        help="number of GPUs of the host; each lane gets its share of the cores")
    options = parser.parse_args()
    options.gpus = max(options.gpus, len(options.lanes))
    for folder in ("bundle", "out", "kernelbench"):
        setattr(options, folder, getattr(options, folder).absolute())
    options.out.mkdir(parents=True, exist_ok=True)
    threads = [threading.Thread(target=run_lane, args=(i, lane, options))
               for i, lane in enumerate(options.lanes) if lane != "-"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
