#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures time and memory of sets at official shapes on a GPU: only the torch worker's part.

Usage: official_sets.py OUT.jsonl TASK.py... [--described FILE] [--families made,outliers] [--limit-s N]

Run it with a Python whose torch has CUDA. It first describes the tasks, several in parallel (FILE keeps the result for
the next call). Then it makes each set in memory like the memory that the evaluator shares. Writes one line of JSON per
set and prints a summary.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Json = dict[str, Any]

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))


def described(path: str) -> Json:
    """A task's request, as the evaluator sends it."""
    from cutegen_worker.describe import describe
    from cutegen_worker.errors import WorkerError
    source = Path(path).read_text(encoding="utf-8")
    request = {"file": str(path), "source": source, "side_file": "", "side": "", "shrink": False,
               "small_elements": 1 << 17, "user_shapes": []}
    try:
        task = describe(request)
    except WorkerError as error:
        return {"file": str(path), "error": error.message}
    shape = next(s for s in task["shapes"] if s["kind"] == "official")
    outputs = [t for t in task["tensors"] if t["role"] == "output"]
    return {"file": str(path), "source": source, "math_mode": task["math_mode"],
            "train_mode": task["train_mode"], "constants": shape.get("constants", {}),
            "outputs": [t["name"] for t in outputs], "dtypes": [t["dtype"] for t in outputs],
            "tensors": [{**t, "shape": shape["tensors"][t["name"]]} for t in task["tensors"]]}


class Memory:
    """Like memory.Mapped, but allocated by torch."""

    def __init__(self, count: int) -> None:
        import torch
        self.bytes: torch.Tensor | None = torch.empty(count, dtype=torch.uint8, device="cuda")

    def tensor(self, offset: int, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        import torch
        count = torch.Size(shape).numel() * dtype.itemsize
        assert self.bytes is not None, "the memory is closed"
        return self.bytes[offset:offset + count].view(dtype).view(shape)

    def close(self) -> None:
        self.bytes = None


def slots_of(task: Json) -> tuple[list[Json], int]:
    """(slots, bytes): all parts in a row."""
    import torch
    from cutegen_worker.official import BY_NAME
    slots, used = [], 0
    for t in task["tensors"]:
        parts = [("value", t["dtype"])]
        if t["role"] == "output":
            parts = [("native", t["dtype"]), ("truth", "f64")]
            parts += [("margin", "f64")] if BY_NAME[t["dtype"]].is_floating_point else []
        for part, dtype in parts:
            slots.append({"name": t["name"], "part": part, "dtype": dtype, "shape": t["shape"],
                          "offset": used, "memory": 0})
            used += -(-torch.Size(t["shape"]).numel() * BY_NAME[dtype].itemsize // 256) * 256
    return slots, used


def make(task: Json, family: str) -> Json:
    import torch
    from cutegen_worker import official
    from cutegen_worker.errors import WorkerError
    line: Json = {"task": Path(task["file"]).stem, "family": family}
    slots, count = slots_of(task)
    line["set_gb"] = round(count / 1e9, 3)
    request = {**{k: task[k] for k in ("source", "file", "constants", "train_mode", "math_mode", "outputs",
                                       "dtypes")}, "family": family, "seed": 1, "shape": "official",
               "slots": slots}
    began = time.monotonic()
    memory: list[Any] = []  # Memory takes the place of the worker's memory.Mapped
    try:
        memory.append(Memory(max(count, 256)))
        line["notes"] = official.fill(request, memory)["notes"]
    except torch.OutOfMemoryError as error:
        line["error"] = str(error)[:300]
        official.drop_memory(memory)
    except WorkerError as error:
        line["error"] = error.message[:300]
    line["seconds"] = round(time.monotonic() - began, 3)
    line["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    return line


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--described")
    parser.add_argument("--families", default="made,outliers")
    parser.add_argument("--limit-s", type=float, default=600)
    options = parser.parse_args()
    if options.described and Path(options.described).exists():
        tasks = json.loads(Path(options.described).read_text(encoding="utf-8"))
    else:
        with concurrent.futures.ProcessPoolExecutor() as pool:
            tasks = list(pool.map(described, options.tasks))
        if options.described:
            Path(options.described).write_text(json.dumps(tasks), encoding="utf-8")
    from cutegen_worker import gpu
    gpu.start("cuda:0")
    began, lines = time.monotonic(), []
    with open(options.out, "w", encoding="utf-8") as out:
        for family in options.families.split(","):
            for task in tasks:
                if "error" in task or time.monotonic() - began > options.limit_s:
                    continue
                lines.append(make(task, family))
                out.write(json.dumps(lines[-1]) + "\n")
                out.flush()
    good = [line["seconds"] for line in lines if "error" not in line]
    print(f"{len(lines)} sets of {len(tasks)} tasks, {len(good)} made: median {statistics.median(good):.2f} s, "
          f"worst {max(good):.2f} s")
    for line in lines:
        if "error" in line:
            print(f"  {line['task']} {line['family']}: {line['error']}")


if __name__ == "__main__":
    main()
