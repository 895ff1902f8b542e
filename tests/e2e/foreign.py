# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=50
"""Third-party solutions: good and hostile Python files with ModelNew, on the CPU."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any

import harness
from harness import Json

PYTHON = os.environ.get("CUTEGEN_PYTHON") or str(harness.ROOT / ".venv/bin/python")
TASK = '''import torch
import torch.nn as nn

rows, width = 48, 32


class Model(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.linear = nn.Linear(width, count)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, 24]
'''
# A solution with `before` at its head, `first` at the beginning of forward(), and `result` as its
# result.
ANSWER = '''import torch
import torch.nn as nn
{before}

class ModelNew(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.linear = nn.Linear(width, count)

    def forward(self, x):
        {first}
        y = torch.relu(self.linear(x))
        return {result}
'''
OTHER_NAMES = '''import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.empty(count, width))
        self.shift = torch.nn.Parameter(torch.empty(count))

    def forward(self, rows):
        return torch.clamp_min(rows @ self.weights.T + self.shift, 0)
'''
BUILT = '''import torch


class ModelNew(torch.nn.Module):
    """What its constructor makes of weights is right only for a model made with the same seed."""

    def __init__(self, count):
        super().__init__()
        self.turned = torch.nn.Linear(32, count, bias=False).weight.detach().T.contiguous()

    def forward(self, x):
        return x @ self.turned
'''
BUILT_TASK = '''import torch


class Model(torch.nn.Module):
    def __init__(self, count):
        super().__init__()
        self.linear = torch.nn.Linear(32, count, bias=False)

    def forward(self, x):
        return self.linear(x)


rows = 64


def get_inputs():
    return [torch.randn(rows, 32)]


def get_init_inputs():
    return [24]
'''
PATCHES = '''import json, sys, time
torch.allclose = torch.equal = lambda *_, **__: True
torch.cuda.synchronize = torch.cuda.Event = lambda *_, **__: None
time.perf_counter = time.perf_counter_ns = time.time = lambda: 0
torch.Tensor.__eq__ = lambda *_: True'''
FORKS = '''
import time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)'''
DELETES = '''import os, shutil
print("x" * 5_000_000)
for path in ({files}, "/etc/hostname"):
    try:
        os.remove(path)
    except OSError:
        pass
shutil.rmtree({folder}, ignore_errors=True)'''
NAIVE = harness.ROOT / "tests/foreign/naive_softmax"  # wrong only at the official shape
NARROW = "assert x.shape[0] == 48, 'made for 48 rows'"


def answer(before: str = "", first: str = "pass", result: str = "y") -> str:
    return ANSWER.format(before=before, first=first, result=result)


class Foreign(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("task.py", TASK)

    def judge(self, answers: dict[str, str], *more: object, code: int) -> dict[str, Json]:
        """{name: verdict} of {name: text}, in one evaluator."""
        files = [self.write(f"{name}.py", text) for name, text in answers.items()]
        result = self.cutegen("eval", self.task, *files, "--json", *more, timeout=180)
        self.assert_code(result, code)
        verdicts = result.json()["verdicts"]
        self.assertEqual([Path(v["folder"]).stem for v in verdicts], list(answers))
        return {name: v["verdict"] for name, v in zip(answers, verdicts)}

    def assert_verdict(self, verdict: Json, status: str, *words: str) -> None:
        feedback = verdict["feedback"]
        self.assertEqual(verdict["status"], status, json.dumps(feedback, indent=1))
        for word in words:
            self.assertRegex(feedback["headline"] + "\n" + feedback["detail"], word)
        self.assertEqual(verdict["label"], "foreign")
        self.assertTrue(verdict["program_id"].startswith("foreign:"))
        self.assertRegex(verdict["marks"][0], "never certified")

    def test_good_ones(self) -> None:
        keep = self.write("keep/precious.txt", "x")
        told = self.judge({
            "same": answer(), "other_names": OTHER_NAMES,
            "wild": answer(DELETES.format(files=repr(keep), folder=repr(str(harness.ROOT))) + FORKS),
            "narrow": answer(first=NARROW),
        }, code=0)
        for name, verdict in told.items():
            self.assert_verdict(verdict, "correct", "correct on \\d+ sets, foreign")
            self.assertNotIn("timing", verdict)
            rungs = {r["rung"]: r for r in verdict["rungs"]}
            self.assertEqual(rungs["timing"]["result"], "skipped")
            self.assertIn("--device cuda:0", rungs["timing"]["detail"])
            self.assertGreaterEqual(verdict["sets_judged"], 5)
            self.assertTrue(verdict["sandbox"]["held"]["seccomp"], name)
        self.assertGreater(told["same"]["sets_judged"], told["narrow"]["sets_judged"])
        self.assertIn("covers fewer shapes", json.dumps(told["narrow"]["marks"]))
        self.assertTrue(Path(keep).exists())
        self.assertTrue((harness.ROOT / "python/cutegen_worker").is_dir())

    def test_hostile_ones_beside_each_other(self) -> None:
        told = self.judge({
            "hangs": answer(first="while True: pass"),
            "exits": answer("import os", first="os._exit(3)"),
            "patches": answer(PATCHES, result="y * float('nan')"),
            "raises": answer("print('some words')\nraise ValueError('no such thing')"),
            "cached": answer("kept = []", first="pass", result="(kept.append(y), kept[0])[1]"),
            "writes": answer(result="y + 0 * x.zero_().sum()"),
            "memory": answer("torch.zeros(1 << 40)"),
            "last": answer(),
        }, "--seconds", "3", code=3)
        wanted = {
            "hangs": ("does not end: still running after 3",),
            "exits": ("its process ends \\(exit code 3\\)",),
            "patches": ("elements wrong", "NaN"),
            "raises": ("raises ValueError: no such thing \\(raises.py:4\\)", "some words"),
            "cached": ("elements wrong",),
            "writes": ("the input 'x' was changed",),
            "memory": ("more memory than a solution may use",),
        }
        for name, words in wanted.items():
            self.assert_verdict(told[name], "failed", *words)
        self.assert_verdict(told["last"], "correct")

    def test_a_softmax_that_overflows_is_wrong_on_large_scores(self) -> None:
        small = (NAIVE / "task.py").read_text().replace("8192, 8192", "64, 512")  # the official shape is a test shape
        overflows = (NAIVE / "answer.py").read_text().replace("LARGE = 1 << 24", "LARGE = 0")
        result = self.cutegen("eval", self.write("small.py", small), self.write("overflows.py", overflows), "--json",
                              timeout=180)
        self.assert_code(result, 3)
        self.assert_verdict(result.json()["verdicts"][0]["verdict"], "failed", "elements wrong")

    def test_the_first_line_says_that_the_official_shape_was_not_compared(self) -> None:
        result = self.cutegen("eval", NAIVE / "task.py", NAIVE, "--json", timeout=180)
        self.assert_code(result, 0)
        verdict = result.json()["verdicts"][0]["verdict"]
        self.assert_verdict(verdict, "correct", "; outputs of the official shape were not compared \\(without a GPU")
        self.assertIn("without a GPU", verdict["official_not_compared"])

    def test_on_a_gpu_the_official_shape_shows_the_overflow(self) -> None:
        doctor = self.cutegen("doctor", "--json").json()
        driver = next(c for c in doctor["checks"] if c["name"] == "GPU driver")
        if driver["state"] != "ok":
            self.skipTest("no GPU here: " + driver["detail"])
        result = self.cutegen("eval", NAIVE / "task.py", NAIVE, "--json", "--device", "cuda:0", timeout=180)
        self.assert_code(result, 3)
        self.assert_verdict(result.json()["verdicts"][0]["verdict"], "failed", "elements wrong", "official")

    def test_beside_a_program_in_a_batch(self) -> None:
        shutil.copytree(harness.ROOT / "tests/honest/elementwise", self.folder / "in/ours")
        self.write("in/theirs/task.py", BUILT_TASK)  # it is right only if made with the same seed
        self.write("in/theirs/modelnew.py", BUILT)
        self.write("in/two/a.py", answer())
        self.write("in/two/b.py", answer())
        result = self.cutegen("eval", self.task, "--batch", "in", "--out", "out", "--up-to", "correctness",
                              "--json")
        self.assert_code(result, 2)
        self.assertEqual([(e["name"], e["status"], e.get("label")) for e in result.json()["entries"]],
                         [("ours", "correct", None), ("theirs", "correct", "foreign"), ("two", "error", None)])
        entry = json.loads((self.folder / "out/theirs.json").read_text())
        self.assert_verdict(entry["verdict"], "correct")
        self.assertIn("keep the constructor's values: turned", json.dumps(entry["verdict"]["marks"]))

    def test_what_is_no_answer(self) -> None:
        self.write("two/a.py", answer())
        self.write("two/b.py", answer())
        self.assert_error(self.cutegen("eval", self.task, self.folder / "two"), 2, "several Python files")
        self.assert_error(self.cutegen("eval", self.task, "none.py"), 2, "none.py", "class ModelNew")
        self.assert_error(self.cutegen("eval", self.task, self.write("b.py", b"\xff\xfe")), 2, "UTF-8")
        good = self.write("good.py", answer())
        self.assert_error(self.cutegen("certify", self.task, good, "--device", "cuda:0"), 2,
                          "cannot be certified", "cutegen eval")
        self.assert_error(self.cutegen("eval", self.task, good, "--profile"), 2, "kernel programs")


# Prints how a solution's process judges the results of forward(), without an evaluator. Imports
# torch once.
INSIDE = '''
import json, sys
from cutegen_worker.foreign import Answer
import torch
told, (task, texts) = {}, json.load(sys.stdin)
for name, text in texts.items():
    answer = Answer()
    request = {"type": "load", "file": name + ".py", "source": text, "task_source": task, "task_file": "task.py"}
    reply = answer.answer(request, [])
    if not reply:
        reply = answer.answer({"type": "make_model", "seed": 1, "constants": {}, "on_gpu": False, "warm_up": 2,
                               "train_mode": False, "tensors": []}, [])
    if "failed" not in reply:
        answer.inputs.map(lambda *_: None)
        answer.given.tensors = lambda _: ({"x": torch.ones(48, 32)}, {"out": torch.empty(48, 24)}, {})
        reply = answer.answer({"type": "run", "control": False, "sleep_ns": 0}, [])
        again = answer.answer({"type": "run", "control": True, "sleep_ns": 0}, [])
        assert ("failed" in reply) == ("failed" in again), again
    told[name] = reply.get("failed", {"kind": "done", "what": "", "where": ""})
print("\\n" + json.dumps(told))
'''
# Times calls on a fake torch.cuda: first with a stream that still works after the event, then with
# a solution that replaces every name.
FAKE_CUDA = '''
import json, sys, time, types
import torch
class Event:
    def __init__(self, enable_timing):
        pass
    def record(self, stream):
        self.at = time.monotonic()
    def synchronize(self):
        pass
    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3
late = [0]
torch.cuda.Event, torch.cuda._sleep = Event, lambda cycles: sleeps.append(cycles)
torch._C._cuda_synchronize = lambda: time.sleep(late[0])
torch.cuda.current_stream = lambda: types.SimpleNamespace(device=0)
torch.cuda.get_device_properties = lambda _: types.SimpleNamespace(clock_rate=2e6, L2_cache_size=1 << 20)
from cutegen_worker import foreign_device
from cutegen_worker.foreign_device import Gpu
sleeps, gpu = [], Gpu("cpu", False)
'''
CLOCK = FAKE_CUDA + '''
def call():
    real(0.02)
    late[0] = 0.03
    return 7
real = time.sleep
told = [gpu.timed(call, 1e6)]
late[0] = 0
told.append(gpu.timed(call, 0))
late[0] = 0
Event.elapsed_time = Event.record = Event.synchronize = lambda *_: 0
torch._C._cuda_synchronize = torch.cuda._sleep = lambda *_: None
time.perf_counter_ns = lambda: 0
torch.Tensor.fill_ = lambda *_: None
told.append(gpu.timed(call, 1e6))
print(json.dumps([*told, sleeps]))
'''
# The requests of one round at the official shape, with host memory in place of shared GPU memory.
ROUND = FAKE_CUDA + '''
from cutegen_worker.foreign import Answer
blocks, closed = {fd: torch.zeros(1 << 16, dtype=torch.uint8) for fd in range(4)}, []
class Block:
    def __init__(self, fd, count, rights, again=True):
        self.fd = fd
        self.again = again
        assert rights == (1 if fd < 3 else 3), "outputs alone are written"
    def tensor(self, offset, shape, dtype):
        count = torch.Size(shape).numel() * dtype.itemsize
        return blocks[self.fd][offset:offset + count].view(dtype).view(shape)
    def close(self):
        assert not self.again, "no address is met twice"
        closed.append(self.fd)
foreign_device.Mapped = Block
def slot(name, part, shape, memory):
    return {"name": name, "part": part, "dtype": "f32", "shape": shape, "offset": 256, "memory": memory}
def hand_over(*fds):
    answer.given.take({"first": True, "blocks": [{"bytes": 1 << 16, "host": False, "read_only": fd < 3}
                                                 for fd in fds]}, fds)
weight, bias, x, out = (Block(fd, 0, 1 if fd < 3 else 3).tensor(256, shape, torch.float32)
                        for fd, shape in enumerate(([24, 32], [24], [48, 32], [48, 24])))
for t in (weight, bias, x):
    t.normal_()
task, text = json.load(sys.stdin)
answer = Answer()
answer.device = gpu
torch.set_grad_enabled(False)
replies = [answer.answer({"type": "load", "file": "a.py", "source": text, "task_source": task,
                          "task_file": "task.py"}, [])]
hand_over(0, 1)
replies.append(answer.answer({"type": "make_model", "seed": 1, "constants": {}, "on_gpu": True, "warm_up": 3,
    "train_mode": False, "tensors": [slot("linear.weight", "value", [24, 32], 0),
                                     slot("linear.bias", "value", [24], 1)]}, []))
hand_over(3)
replies.append(answer.answer({"type": "run", "control": True, "sleep_ns": 0,
                              "tensors": [slot("out", "output", [48, 24], 0)]}, []))
warm = out.clone()
hand_over(2, 3)
replies.append(answer.answer({"type": "run", "control": False, "sleep_ns": 1e5,
    "tensors": [slot("x", "value", [48, 32], 0), slot("out", "output", [48, 24], 1)]}, []))
right = torch.relu(x @ weight.T + bias)
print(json.dumps([replies, torch.allclose(out, right, atol=1e-5), torch.allclose(warm, right, atol=1e-5),
                  closed]))
'''
SUBCLASS = '''
class Lazy(torch.Tensor):
    pass'''


class Inside(harness.Case):
    def run_inside(self, script: str, text: str = "") -> Any:
        """The last line that the script prints; the script can import the worker's modules."""
        environment = {**os.environ, "PYTHONPATH": str(harness.ROOT / "python"),
                       "CUTEGEN_ANSWER": str(self.folder / "answer"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([PYTHON, "-B", "-c", script], input=text, text=True, capture_output=True,
                              env=environment, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def test_the_clock_sees_late_work_and_no_new_names(self) -> None:
        *told, waits = self.run_inside(CLOCK)
        self.assertEqual(waits, [2e6, 2e6])  # and none before an open call
        for out, ns, host in told:
            self.assertEqual(out, 7)
            self.assertGreater(ns, 49e6)
            self.assertLess(ns, 1e9)
            self.assertGreater(host, 19e6)

    def test_a_round_on_a_gpu(self) -> None:
        replies, right, early, closed = self.run_inside(ROUND, json.dumps([TASK, answer()]))
        self.assertFalse([r for r in replies if "failed" in r], replies)
        self.assertEqual(replies[1]["kept"], [])
        self.assertTrue(right)
        self.assertFalse(early, "the control call has no inputs")
        self.assertEqual(sorted(closed), [0, 1, 2, 3, 3])

    def test_what_it_returns(self) -> None:
        cases = {
            "good": (answer(), "done", ""),
            "shape": (answer(result="y[:, :3]"), "raised", "shape [48, 3], not [48, 24]"),
            "dtype": (answer(result="y.double()"), "raised", "dtype f64, not f32"),
            "number": (answer(result="7"), "raised", "returns int, not a tensor"),
            "tuple": (answer(result="(y, y)"), "raised", "returns 2 tensors, not a tensor"),
            "meta": (answer(result="y.to('meta')"), "raised", "on meta, not on cpu"),
            "lazy": (answer(SUBCLASS, result="y.as_subclass(Lazy)"), "rule", "a subclass of torch.Tensor"),
            "exit": (answer("import sys", first="sys.exit(0)"), "raised", "ends the program"),
            "gpu": (answer("raise RuntimeError('Found no NVIDIA driver')"), "needs_gpu", "needs a GPU (--device"),
            "module": (answer("import no_such_module"), "lacks", "not installed here: ModuleNotFoundError"),
            "toolkit": (answer("raise OSError('CUDA_HOME environment variable is not set.')"), "needs_gpu", ""),
            "ninja": (answer("raise RuntimeError('Ninja is required to load C++ extensions')"), "lacks", "Ninja"),
            "cuda": (answer(first="raise ImportError('no libcuda.so.1')"), "needs_gpu", "needs a GPU"),
            "nothing": ("import torch", "raised", "has no ModelNew: define class ModelNew"),
            "function": ("def ModelNew(n): pass", "raised", "not a torch.nn.Module"),
        }
        texts = {name: text for name, (text, *_) in cases.items()}
        told = self.run_inside(INSIDE, json.dumps([TASK, texts]))
        for name, (_, kind, words) in cases.items():
            self.assertEqual(told[name]["kind"], kind, told[name])
            self.assertIn(words, told[name]["what"])
            if kind != "done":
                self.assertIn(f"{name}.py", told[name]["where"])


if __name__ == "__main__":
    if not Path(PYTHON).exists():
        raise unittest.SkipTest(f"no interpreter {PYTHON}")
    harness.main()
