# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: runs the built programs, and looks for processes that they leave behind.

Each test runs in its own folder with its own home. After a test, no process may be left: this process adopts the
orphans of everything that it starts, so it finds all of them. The events in the journals of a test must have the fields
that docs/reference/events.md lists.

Example:
    class MyTest(harness.Case):
        def test_x(self):
            result = self.cutegen("describe", self.write("t.py", TEXT), "--json")
            self.assert_code(result, 0)
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(os.environ.get("CUTEGEN_SHARE", Path(__file__).resolve().parents[2]))
BIN = Path(os.environ.get("CUTEGEN_BIN", ROOT / "build/release/bin"))
PR_SET_CHILD_SUBREAPER = 36
Json = dict[str, Any]  # an object that a program wrote or reads
Process = subprocess.Popen[bytes]
TaskText = str | tuple[str, str]  # of a task file; with the text of its side file
T = TypeVar("T")
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

ADD = '''import torch
import torch.nn as nn

size = 4096


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0


def get_inputs():
    return [torch.randn(64, size)]


def get_init_inputs():
    return []
'''

# The shipped softmax at a size that the simulator times in a second: the same recipe and the same search.
SOFTMAX = (ROOT / "tasks/softmax.py").read_text().replace("= 4096", "= 64").replace("= 32768", "= 8192")


class Result:
    """How a command ended."""

    def __init__(self, command: list[str], code: int, out: str, err: str, seconds: float) -> None:
        self.command, self.code, self.out, self.err = command, code, out, err
        self.seconds = seconds

    def json(self) -> Json:
        return json.loads(self.out)

    def __str__(self) -> str:
        return (f"$ {' '.join(self.command)}\nexit {self.code} after {self.seconds:.1f} s\n"
                f"--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}")


def parents() -> list[tuple[int, int, str, str]]:
    """The (pid, parent, state, name) of every process."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        found.append((int(entry.name), int(rest[1]), rest[0], name))
    return found


def descendants(ancestor: int) -> dict[int, str]:
    """The {pid: name} of the live descendants of a process, without zombies."""
    table, below, grown = parents(), {ancestor: ""}, True
    while grown:
        grown = False
        for pid, parent, _, name in table:
            if parent in below and pid not in below:
                below[pid] = name
                grown = True
    dead = {pid for pid, _, state, _ in table if state in "ZX"}
    return {pid: name for pid, name in below.items() if pid != ancestor and pid not in dead}


def reap() -> None:
    """Collects ended orphans that this process has adopted."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wait_for_none(seconds: float = 5.0) -> dict[int, str]:
    """The processes below this one that are still running after a while."""
    end = time.monotonic() + seconds
    while True:
        reap()
        left = descendants(os.getpid())
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)


def plain_environment(home: str | Path) -> dict[str, str]:
    """Only the environment variables that the programs need."""
    env = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR", "CUTEGEN_PYTHON", "CUDA_VISIBLE_DEVICES")
           if name in os.environ}
    env.update(HOME=str(home), XDG_CACHE_HOME=str(BIN.parent / "e2e-cache"))
    if not (BIN.parent / "libexec").exists():
        env.update(CUTEGEN_SHARE=str(ROOT), CUTEGEN_BIN=str(BIN))
    elif "LD_LIBRARY_PATH" in os.environ:  # a bundle brings its own files, and finds the GPU's
        env["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return env


def journal_faults(folder: str | Path) -> list[str]:
    """How the events in the journals below a folder differ from the table of src/store/events.cpp."""
    if not (ROOT / "src/store/events.cpp").is_file():  # the programs alone, on another machine
        return []
    sys.path.insert(0, str(ROOT / "tools"))
    import reference
    types = reference.event_types(ROOT)
    faults: list[str] = []
    for path in Path(folder).rglob("cutegen.db"):
        try:
            with contextlib.closing(sqlite3.connect(path)) as base:
                events = base.execute("SELECT type, version, json FROM events").fetchall()
        except sqlite3.DatabaseError:  # a test that breaks its journal
            continue
        for name, version, text in events:
            if name in types and types[name].version == version:
                faults += types[name].faults(json.loads(text))
    return sorted(set(faults))


def all_cases() -> bool:
    """Whether a test runs every case of a long table, not only the commit's part."""
    return bool(os.environ.get("CUTEGEN_ALL_CASES"))


def some(*cases: T, most: int = 1) -> tuple[T, ...]:
    """The first cases of a family, or all of them if CUTEGEN_ALL_CASES is set, because each case takes a whole run."""
    return cases if all_cases() else cases[:most]


def turn() -> int:
    """A number that differs from commit to commit, so that different commits run different parts of long tables."""
    told = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return int(told.stdout[:7], 16) if told.returncode == 0 else 0


def in_turn(cases: Mapping[str, T], parts: int) -> dict[str, T]:
    """One of the parts of a table, which the commit chooses; the whole table if CUTEGEN_ALL_CASES is set.
    CUTEGEN_FEWER_CASES=N divides the table into N times as many parts, but a part has at least one case.
    """
    if all_cases():
        return dict(cases)
    parts = min(max(1, len(cases)), parts * int(os.environ.get("CUTEGEN_FEWER_CASES") or 1))
    chosen = dict(list(cases.items())[turn() % parts::parts])
    print(f"{len(chosen)} of {len(cases)} cases, by the commit: {', '.join(chosen)}", file=sys.stderr)
    return chosen


class SolvedTask:
    """A row of `cutegen bench` and its program."""

    def __init__(self, row: Json, out: Path) -> None:
        self.status, self.reason, self.rewrites = row["status"], row["reason"], row.get("rewrites", [])
        self.folder = Path(out) / "programs" / f"level1_{row['name']}"

    @property
    def plan(self) -> Json:
        return json.loads((self.folder / "plan.json").read_text())

    @property
    def verdict(self) -> Json:
        return json.loads((self.folder / "verdict.json").read_text())

    @property
    def source(self) -> str:
        return "\n".join(file.read_text() for file in sorted(self.folder.glob("*.cu")))

    @property
    def kernels(self) -> list[str]:
        """The kernel of each step; "" for a step that fills memory."""
        return [step.get("kernel", "") for step in self.plan["steps"]]


class Case(unittest.TestCase):
    """A test that has its own folder and leaves no process behind."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cutegen-e2e-"))
        self.home = self.folder / "home"
        self.home.mkdir()

    def tearDown(self) -> None:
        left = wait_for_none()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        faults = journal_faults(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(left, {}, "processes were left running")
        self.assertEqual(faults, [], "the journal differs from the table of events")

    @staticmethod
    def command_line(*arguments: object) -> list[str]:
        return [str(BIN / "cutegen"), *map(str, arguments)]

    def environment(self, **more: str) -> dict[str, str]:
        """A plain environment. All tests share one compile cache, as a user's runs do."""
        env = plain_environment(self.home)
        env.update(more)
        return env

    def write(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return str(path)

    def start(self, *arguments: object, env: dict[str, str] | None = None, **settings: Any) -> Process:
        """Starts the command with pipes; the caller ends it."""
        settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                    "stderr": subprocess.PIPE, "cwd": self.folder, **settings}
        return subprocess.Popen(self.command_line(*arguments), env=self.environment(**(env or {})), **settings)

    def cutegen(self, *arguments: object, timeout: float = 120, env: dict[str, str] | None = None,
                **settings: Any) -> Result:
        """Runs a command to its end. If it does not end, the test fails."""
        began = time.monotonic()
        process = self.start(*arguments, env=env, **settings)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"did not end in {timeout} s: {arguments}\n{(err or b'').decode(errors='replace')}")
        out_text, err_text = ((part or b"").decode(errors="replace") for part in (out, err))
        return Result(self.command_line(*arguments), process.returncode, out_text, err_text, time.monotonic() - began)

    def solve(self, tasks: Mapping[str, TaskText], *options: object, device: str = "sim:h200",
              evaluations: int = 1, timeout: float = 900) -> dict[str, SolvedTask]:
        """{name: row} of {name: text of a task, or (text, side file)}: one `cutegen bench`, with the best program of
        each. Starts torch and the compiler once for all tasks, because that takes longer than most tasks.
        """
        suite = Path(tempfile.mkdtemp(prefix="suite-", dir=self.folder))
        (suite / "level1").mkdir()
        for number, (name, text) in enumerate(tasks.items(), 1):
            text, side = text if isinstance(text, tuple) else (text, None)
            file = suite / "level1" / f"{number}_{name}.py"
            file.write_text(text)
            if side:
                file.with_suffix(".toml").write_text(side)
        result = self.cutegen("bench", "--kernelbench", suite, "--model", "builtin", "--device", device, "--runs",
                              suite / "runs", "--evaluations", evaluations, "--no-profile", "--out", suite / "out",
                              "--json",
                              *options, timeout=timeout)
        self.assertIn(result.code, (0, 3), str(result))
        rows = [SolvedTask(row, suite / "out") for row in result.json()["tasks"]]
        self.assertEqual(len(rows), len(tasks), str(result))
        return dict(zip(tasks, rows))

    def match(self, pattern: str, text: str) -> re.Match[str]:
        """The place where the text matches the pattern. If it does not, the test fails."""
        found = re.search(pattern, text)
        return found or self.fail(f"no {pattern!r} in\n{text}")

    def assert_code(self, result: Result, code: int) -> None:
        self.assertEqual(result.code, code, str(result))

    def assert_error(self, result: Result, code: int, *parts: str) -> None:
        """An expected failure: its exit code, one line with the parts of the message, no trace of a crash."""
        self.assert_code(result, code)
        lines = [line for line in result.err.splitlines() if "error: " in line]
        self.assertEqual(len(lines), 1, "wanted one line of error\n" + str(result))
        self.assert_error_line(lines[0], *parts, told=str(result))
        self.assert_no_crash(result)

    def assert_error_line(self, line: str, *parts: str, told: str = "") -> None:
        for part in parts:
            self.assertRegex(line.lower(), part.lower(), told)
        self.assertLess(len(line), 1000, "the line is too long\n" + told)

    def assert_no_crash(self, result: Result) -> None:
        for word in ("Traceback", "terminate called", "Segmentation", "assertion"):
            self.assertNotIn(word, result.err, str(result))


class ModelServer:
    """A scripted model (tests/tools/model_server.py) for one run: each new question gets the next reply."""

    def __init__(self, folder: Path, replies: list[Json], **script: Any) -> None:
        file = folder / "script.json"
        file.write_text(json.dumps({"rules": [{"when": "", "replies": replies}], **script}))
        program = ROOT / "tests" / "tools" / "model_server.py"
        self.process = subprocess.Popen([sys.executable, "-B", program, "--script", file],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.base = f"http://127.0.0.1:{self.stdout.readline().split()[1]}/model"

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdin.close()
        self.process.wait()
        self.stdout.close()

    def log(self) -> list[Json]:
        """The requests so far: [{api, headers, body, did}]."""
        with urllib.request.urlopen(self.base + "/log") as answer:
            return json.load(answer)


def main() -> None:
    if not (BIN / "cutegen").exists():
        sys.exit(f"no program {BIN}/cutegen: build first, or set CUTEGEN_BIN")
    unittest.main(verbosity=2)
