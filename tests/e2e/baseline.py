# SPDX-License-Identifier: Apache-2.0
# ctest: cost=20
"""The distance of a baseline's result from eager's (NaN and infinity count, too), and the GPU's lock while
torch.compile tries kernels.
"""
from __future__ import annotations

import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any

import harness

PYTHON = os.environ.get("CUTEGEN_PYTHON") or str(harness.ROOT / ".venv/bin/python")
CASES = [  # wanted, got, distance
    ("[1., nan]", "[1., nan]", 0),
    ("[1., nan]", "[1., 2.]", float("inf")),
    ("[1., 2.]", "[nan, 2.]", float("inf")),
    ("[1., inf]", "[1., inf]", 0),
    ("[1., inf]", "[1., -inf]", float("inf")),
    ("[2., 1.]", "[2., 1.5]", 0.25),
    ("[]", "[]", 0),
]
SCRIPT = """import json, torch
from math import inf, nan
from cutegen_worker.baseline import distance
print(json.dumps([distance(torch.tensor(w), torch.tensor(g)) for w, g in [{pairs}]]))
"""
# Runs Inductor's benchmarker. Prints its arguments and whether another process could take the lock
# meanwhile and afterwards, also for a worker that holds the lock only while it opens.
SLOT = """import fcntl, json, os, tempfile, types
import torch._inductor.runtime.benchmarking as benchmarking
from cutegen_worker.slot import Slot
def free(name):
    with open(name) as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
told = []
for opening in (False, True):
    file = tempfile.NamedTemporaryFile()
    def plain(run, estimation_iters=5, max_benchmark_duration=25):
        return [estimation_iters, max_benchmark_duration, free(file.name)]
    benchmarking.benchmarker = types.SimpleNamespace(benchmark_gpu=plain)
    slot = Slot()
    slot.take_over(os.open(file.name, os.O_RDONLY))
    slot.for_opening = opening
    slot.guard_autotuning()
    told.append([benchmarking.benchmarker.benchmark_gpu(None), free(file.name)])
    slot.opened()
    told[-1].append(benchmarking.benchmarker.benchmark_gpu(None)[2])
print(json.dumps(told))
"""
# Times calls on a fake GPU that only keeps the time: one returns at once, one waits for the GPU,
# one takes longer on the host for a while. Prints the waits that the GPU got for each call, in us.
WAITS = """import json, time, types
import torch
from cutegen_worker.baseline import Opened
free, waits = [0], []
class Event:
    def __init__(self, enable_timing):
        pass
    def record(self):
        self.at = max(time.monotonic(), free[0])
    def query(self):
        return time.monotonic() >= self.at
    def synchronize(self):
        time.sleep(max(0, free[0] - time.monotonic()))
    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3
def sleep(cycles):
    waits[-1].append(cycles)
    free[0] = max(time.monotonic(), free[0]) + cycles * 1e-6
torch.cuda.Event, torch.cuda._sleep = Event, sleep
slower = iter([1, 4, 8, 4, 4, 4, 4, 4])
for call in (lambda: None, lambda: Event.synchronize(None), lambda: time.sleep(next(slower) * 1e-3)):
    waits.append([])
    opened = Opened.__new__(Opened)
    opened.paces, opened.hertz, opened.cool = {}, 1e6, lambda: None
    for _ in range(8):
        opened.by_events("eager", call, "cold")
print(json.dumps(waits))
"""
# A GPU whose memory other work slows down for a while: runs in that time do not count. Prints
# whether all times come from a quiet GPU, and the times on a GPU that stays busy.
BUSY = """import json, time
from cutegen_worker import baseline
from cutegen_worker.baseline import Opened, QuietMemory
from cutegen_worker.slot import Slot
baseline.BUSY_S = 1.0
now = [1.0]
time.monotonic = lambda: now[0]
start = time.monotonic()
def timed(busy):
    opened = Opened.__new__(Opened)
    opened.ways, opened.started, opened.slot, opened.file = {"eager": None}, {("eager", "cold")}, Slot(), "t.py"
    opened.memory = QuietMemory()
    def work(ns):
        now[0] += 0.002
        opened.memory.saw(1.2 if busy() else 1.0)
        return 2 * ns if busy() else ns
    opened.cool = lambda: lambda: work(0)
    opened.by_events = lambda *_: work(5.0)
    return [opened.time("eager", "cold", 20) for _ in range(8)]
# The other work may begin during the last of 20 runs.
told = [all(sorted(t)[10] == 5.0 for t in timed(lambda: 0.25 < time.monotonic() - start < 0.6))]
then = time.monotonic()
told.append(timed(lambda: time.monotonic() - then > 0.25)[-1])
print(json.dumps(told))
"""
# A module that mutates its input and replaces its buffer, called twice: each call starts with the initial values.
RESTORED = """import json, torch
from cutegen_worker.baseline import Flags, Opened
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(2))
    def forward(self, x):
        self.total = self.total * 2
        return x.add_(1)
opened = Opened.__new__(Opened)
opened.model, opened.given = Model(), {"x": torch.zeros(2)}
opened.args, opened.kwargs = [opened.given["x"]], {}
opened.initial = {n: t.clone() for n, t in opened.tensors(["total", "x"])}
told = [opened.results(opened.model, Flags(False)) for _ in range(2)]
print(json.dumps([[t.tolist() for t in found] for found in told]))
"""
# Fills PyTorch's cache of max-autotune measurements with another worker's, and queries it as
# PyTorch does.
TUNED = """import json, math, os, sys, tempfile
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
from cutegen_worker import tuned
from torch._inductor.codecache import PersistentCache
class Choice:
    def __init__(self, name):
        self.name = name
    def hash_key(self):
        return self.name
choices = [Choice("extern"), Choice("triton")]
cache = PersistentCache()
told = [tuned.found()]
times = {choices[0]: 1.5, choices[1]: math.inf}
cache.lookup(choices, "mm", "sizes", lambda _: times)
told.append(tuned.found())
told.append(cache.lookup(choices, "addmm", "sizes", None) == {})
tuned.put({"addmm": {"sizes": {"highest": {"extern": 2.5, "triton": 0.5}}}})
told.append(sorted(cache.lookup(choices, "addmm", "sizes", None).values()))
told.append(sorted(cache.lookup(choices, "mm", "sizes", None).values())[0])
cache.update_local_cache({"a": {"b": "text", "c": True}, "mm": {"s": {"p": {"h": 1.0}}}})
told.append(tuned.found())
print(json.dumps(told))
"""

# Runs a module on given values in host memory. Prints its tensors and results, then the refused
# calls, then who may use TF32 while each baseline runs, and whether the flags are restored.
GIVEN = """import json, torch
from cutegen_worker import official
from cutegen_worker.baseline import Flags, Opened
from cutegen_worker.errors import WorkerError
from cutegen_worker.slot import Slot
from cutegen_worker.source import Source
from cutegen_worker.trace import build
FILE = '''
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        self.register_buffer("x", torch.zeros(2))
    def forward(self, x):
        return self.fc(x) + self.x
def get_inputs():
    return [torch.rand(4, 3)]
'''
class Memory:
    def __init__(self):
        self.parts = {}
    def tensor(self, offset, shape, dtype):
        return self.parts.setdefault(offset, torch.ones(shape, dtype=dtype))
    def close(self):
        pass
opened = Opened.__new__(Opened)
opened.device, opened.file, opened.slot = torch.device("cpu"), "t.py", Slot()
opened.take(*build(Source(FILE, "t.py").run({}), "t.py"))
opened.ways = {"eager": (opened.model, Flags())}
def places(dtype):
    wanted = [("x", [4, 3], "value"), ("fc.weight", [2, 3], "value"), ("fc.bias", [2], "value"),
              ("self.x", [2], "value"), ("out", [4, 2], "output")]
    return official.Places([{"name": n, "shape": s, "part": p, "dtype": dtype if p == "output" else "f32",
                             "memory": 0, "offset": i} for i, (n, s, p) in enumerate(wanted)], [Memory()])
told = [sorted(opened.named)]
there = places("f32")
opened.run_on("eager", there, ["out"])
told.append(there.view("out", "output").flatten().tolist())
for kind, dtype, names in (("eager", "f16", ["out"]), ("eager", "f32", []), ("compile", "f32", ["out"])):
    try:
        opened.run_on(kind, places(dtype), names)
        told.append("")
    except WorkerError as error:
        told.append(error.message)
flags = lambda: [torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32]
before = flags()
for kind in ("eager", "eager-fp32", "eager-tf32", "compile"):
    with Flags(kind):
        told.append(flags())
told.append(flags() == before)
print(json.dumps(told))
"""


@unittest.skipUnless(Path(PYTHON).exists(), f"no interpreter {PYTHON}")
class Baseline(unittest.TestCase):
    def run_inside(self, script: str) -> Any:
        done = subprocess.run([PYTHON, "-B", "-c", script], text=True, check=True, capture_output=True,
                              env={**os.environ, "PYTHONPATH": str(harness.ROOT / "python")})
        return json.loads(done.stdout)

    def test_kernels_are_tried_behind_the_lock(self) -> None:
        suite, certificate = self.run_inside(SLOT)
        self.assertEqual(suite, [[2, 10, False], True, False])  # briefly; and the lock stays its own
        self.assertEqual(certificate, [[5, 25, False], True, True])  # as PyTorch does; no lock once all are open

    def test_the_gpu_does_not_wait_for_a_call_that_waits_for_it(self) -> None:
        queued, waiting, slower = self.run_inside(WAITS)
        self.assertEqual(len(queued), 8)
        self.assertEqual(len(waiting), 4)  # and each would be half as long again as the one before
        self.assertEqual(len(slower), 8)
        self.assertGreater(min(slower[4:]), 4000)

    def test_runs_beside_other_work_on_the_memory_are_repeated(self) -> None:
        quiet, busy = self.run_inside(BUSY)
        self.assertTrue(quiet)
        self.assertEqual(busy, [10.0] * 20)  # it gives up waiting in the end

    def test_a_call_starts_with_the_initial_values(self) -> None:
        told = self.run_inside(RESTORED)
        self.assertEqual(told, [[[1, 1], [2, 2], [1, 1]]] * 2)  # what is returned, then total and x

    def test_what_was_tuned_is_handed_on(self) -> None:
        nothing, found, unknown, given, kept, other = self.run_inside(TUNED)
        self.assertEqual(nothing, {})
        self.assertEqual(found, {"mm": {"sizes": {"highest": {"extern": 1.5, "triton": 1e30}}}})
        self.assertTrue(unknown)
        self.assertEqual(given, [0.5, 2.5])
        self.assertEqual(kept, 1.5)
        self.assertEqual(other, {"a": {}, "mm": {"s": {"p": {"h": 1.0}}}})

    def test_a_way_runs_on_given_values(self) -> None:
        names, out, dtype, count, closed, *flags = self.run_inside(GIVEN)
        self.assertEqual(names, ["fc.bias", "fc.weight", "self.x", "x"])
        self.assertEqual(out, [5] * 8)  # three products of ones, and two ones
        self.assertIn("returns torch.float32 for 'out'", dtype)
        self.assertIn("returns 1 tensors, not 0", count)
        self.assertIn("compile is not open", closed)
        self.assertEqual(flags, [[False, True], [False, False], [True, True], [False, True], True])

    def test_distance(self) -> None:
        pairs = ", ".join(f"({wanted}, {got})" for wanted, got, _ in CASES)
        self.assertEqual(self.run_inside(SCRIPT.format(pairs=pairs)), [distance for *_, distance in CASES])


if __name__ == "__main__":
    unittest.main()
