# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=1200 cost=75
"""Hostile and broken programs: each gets its verdict, and none leaves a process behind.

tests/attacks/NAME holds a program and expected.json: the reason, the rows of docs/attacks.md that the program covers,
the task (in tests/attacks/tasks; without a name, task.py), and the expected status, the rung that ends the ladder, and
a pattern of the headline. One evaluator judges all programs, so each verdict also shows that the program before did no
harm. An honest program is the first and the last. A commit chooses an eighth of the programs of task.py and an eighth
of the other tasks. CORE is always judged. With CUTEGEN_ALL_CASES=1 the test judges all of them.

On a GPU: python3 tests/e2e/attacks.py OnADevice --device cuda:0 [--out FILE.jsonl] [--skip NAME...] [--only NAME...]
There, a part "cuda" of expected.json replaces the values that it names, and must give the reason.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Sequence
from pathlib import Path

import harness
from evaluator_client import Evaluator, load_program
from harness import Json

ATTACKS = harness.ROOT / "tests/attacks"
CORRECT, ENVIRONMENT = 0, 6
ROWS = 80  # of the catalogue
# A quick program for each rung that can reject a program.
CORE = ("control", "reads_file", "counts_calls", "compile_error", "state_in_assembler", "assembler_breaks_out",
        "overflows",
        "out_of_bounds_write", "copies_input", "nan_everywhere", "public_seed", "keeps_state")


def task_file(expected: Json) -> Path:
    name = expected.get("task")
    return ATTACKS / "tasks" / f"{name}.py" if name else ATTACKS / "task.py"


def expectations() -> dict[str, Json]:
    """{name: expected values}, grouped by task, task.py first."""
    found = {p.parent.name: json.loads(p.read_text()) for p in ATTACKS.glob("*/expected.json")}
    order = sorted(found, key=lambda n: (found[n].get("task", ""), n != "control", n))
    return {n: found[n] for n in order}


def chosen() -> dict[str, Json]:
    """The commit's part. Opening a task takes longer than judging a program, so the part has all programs of a task."""
    everything = expectations()
    by_itself = {name: expected for name, expected in everything.items() if "task" in expected}
    tasks = harness.in_turn({expected["task"]: None for expected in by_itself.values()}, 8)
    names = {*CORE, *harness.in_turn({name: None for name in everything if name not in by_itself}, 8)}
    return {name: expected for name, expected in everything.items()
            if name in names or expected.get("task") in tasks}


class Judging(harness.Case):
    def check(self, name: str, expected: Json, verdict: Json) -> None:
        told = json.dumps(verdict, indent=1)
        self.assertRegex(verdict["status"], f"^({expected['status']})$", told)
        self.assertRegex(verdict["feedback"]["headline"],
                         re.compile(expected["headline"], re.IGNORECASE), told)
        ended = [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"]
        if expected["rung"]:
            self.assertEqual(len(ended), 1, told)
            self.assertRegex(ended[0], f"^({expected['rung']})$", told)
        self.assertLess(len(verdict["feedback"]["detail"]), 1600, told)

    def judge_all(self, all_of_them: dict[str, Json], note: Callable[[str, Json], None] = lambda name, verdict: None,
                  **options: str) -> None:
        opened = None
        with Evaluator(self.environment(A_SECRET_KEY="s3cret"), **options) as evaluator:
            for name, expected in all_of_them.items():
                if task_file(expected) != opened:
                    opened = task_file(expected)
                    task = evaluator.open_task(opened)
                    self.assertTrue(task["admission"]["admitted"], task["admission"])
                with self.subTest(name):
                    verdict = evaluator.evaluate(load_program(ATTACKS / name))
                    note(name, verdict)
                    self.check(name, expected, verdict)
            with self.subTest("an honest program after all of them"):
                evaluator.open_task(ATTACKS / "task.py")
                verdict = evaluator.evaluate(load_program(ATTACKS / "control"))
                note("control, at the end", verdict)
                self.check("control", all_of_them["control"], verdict)


class OnADevice(Judging):
    """Only on request: judges the whole corpus on a GPU."""

    device, out = "", ""
    skip: Sequence[str] = ()
    only: Sequence[str] = ()

    def note(self, name: str, verdict: Json) -> None:
        line = {"program": name, "status": verdict["status"],
                "rung": [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"],
                "headline": verdict["feedback"]["headline"], "elapsed_ms": verdict["elapsed_ns"] / 1e6,
                "sandbox": verdict["sandbox"], "skipped": verdict["skipped"]}
        if self.out:
            with open(self.out, "a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")

    def test_every_attack_gets_its_verdict_there(self) -> None:
        if not self.device:
            self.skipTest("give --device cuda:0")
        self.judge_all({name: {**expected, **expected.get("cuda", {})}
                        for name, expected in expectations().items()
                        if name not in self.skip and (not self.only or name in self.only or name == "control")},
                       self.note, device=self.device, python=os.environ.get("CUTEGEN_PYTHON", ""))


class Attacks(Judging):
    def test_every_attack_gets_its_verdict(self) -> None:
        self.judge_all(chosen())

    def test_what_a_gpu_cannot_tell_has_a_reason(self) -> None:
        for name, expected in expectations().items():
            if "cuda" in expected:
                self.assertGreater(len(expected["cuda"]["why"]), 20, name)
                self.assertLessEqual(set(expected["cuda"]), {"why", "status", "rung", "headline"}, name)

    def test_the_catalogue_is_complete(self) -> None:
        text = (harness.ROOT / "docs/attacks.md").read_text(encoding="utf-8")
        rows = {}
        for match in re.finditer(r"^\| (\d+) \|([^|]*)\|([^|]*)\|$", text, re.MULTILINE):
            rows[int(match[1])] = match[3]
        # Long lists of programs stand below the table.
        for match in re.finditer(r"^- Row (\d+):(.*(?:\n  .*)*)$", text, re.MULTILINE):
            rows[int(match[1])] += match[2]
        self.assertEqual(sorted(rows), list(range(1, ROWS + 1)))
        for name, expected in expectations().items():
            for row in expected.get("rows", []):
                self.assertIn(f"`{name}`", rows[row], f"row {row} does not name {name}")
        for row, names in rows.items():
            self.assertTrue(names.strip(), f"row {row} has neither a program nor a reason")
            for name in re.findall(r"`(\w+)`", names):
                self.assertTrue((ATTACKS / name / "expected.json").exists(), f"row {row}: {name}")

    def test_the_exit_code_is_the_status(self) -> None:
        for name, code in (("keeps_state", 4), ("refused_shape", 5)):  # Protection has a correct one
            with self.subTest(name):
                self.assert_code(
                    self.cutegen("eval", ATTACKS / "task.py", ATTACKS / name, "--up-to", "load"),
                    code)

    def at_work(self, process: harness.Process) -> None:
        """Waits until the endless loop runs, that is, until its runner has used a second of processor time."""
        end = time.monotonic() + 200
        while time.monotonic() < end and process.poll() is None:
            for pid, name in harness.descendants(process.pid).items():
                if name == "cutegen-runner" and processor_seconds(pid) > 1:
                    return
            time.sleep(0.05)
        self.fail("the program was never run")

    def start_endless(self) -> harness.Process:
        return self.start("eval", ATTACKS / "task.py", ATTACKS / "endless_loop",
                          stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def test_an_interrupt_ends_an_evaluation_at_once(self) -> None:
        process = self.start_endless()
        self.at_work(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 130)

    def test_an_evaluator_that_dies_is_started_again(self) -> None:
        process = self.start("eval", ATTACKS / "task.py", ATTACKS / "endless_loop", "--json")
        self.at_work(process)
        for pid, name in harness.descendants(process.pid).items():
            if name == "cutegen-evaluat":  # the kernel keeps 15 characters
                os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=200)
        self.assertIn(b"the evaluator died", err)
        self.check("endless_loop", expectations()["endless_loop"],
                   json.loads(out)["verdicts"][0]["verdict"])

    def test_nothing_outlives_a_killed_command(self) -> None:
        process = self.start_endless()
        self.at_work(process)
        process.kill()
        process.wait(timeout=10)
        self.assertEqual(harness.wait_for_none(10), {})


class Protection(harness.Case):
    """The sandbox: what every child can see, and that cutegen refuses to run with less protection."""

    def test_no_child_sees_a_secret(self) -> None:
        hidden = {"OPENAI_API_KEY": "s3cret-1", "GITHUB_TOKEN": "s3cret-2", "DB_PASSWORD": "s3cret-3",
                  "LD_PRELOAD_NOTE": "s3cret-4", "CUTEGEN_SECRET_X": "s3cret-5"}
        with Evaluator(self.environment(**hidden)) as evaluator:
            evaluator.open_task(ATTACKS / "task.py")
            evaluator.evaluate(load_program(ATTACKS / "control"))
            names = {}
            for pid, name in harness.descendants(evaluator.process.pid).items():
                try:
                    names[name] = Path(f"/proc/{pid}/environ").read_bytes()
                except OSError:
                    continue
        for wanted in ("cutegen-runner", "cutegen-compile", "python"):
            self.assertTrue(any(n.startswith(wanted) for n in names), names.keys())
        names.pop("cutegen-init", None)  # supervisors: our own code, whose memory nobody may read
        for name, environment in names.items():
            self.assertNotIn(b"s3cret", environment, name)

    @unittest.skipUnless(Path("/usr/lib/x86_64-linux-gnu/libseccomp.so.2").exists(), "no libseccomp")
    def test_less_than_full_protection_is_refused_when_asked(self) -> None:
        arguments = ("eval", ATTACKS / "task.py", ATTACKS / "control", "--up-to", "load")
        full = self.cutegen(*arguments, "--require-sandbox")
        self.assert_code(full, CORRECT)
        self.assertIn("sandbox full", full.out)
        refused = self.cutegen(*arguments, "--require-sandbox", preexec_fn=without_namespaces)
        self.assert_error(refused, ENVIRONMENT, "the full sandbox is not available", "namespaces",
                          "without --require-sandbox")
        partial = self.cutegen(*arguments, preexec_fn=without_namespaces)
        self.assert_code(partial, CORRECT)
        self.assertIn("sandbox partial", partial.out)


def without_namespaces() -> None:
    """Makes the kernel refuse namespaces to this process and its descendants."""
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    lib.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]

    class Compare(ctypes.Structure):
        _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int),
                    ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]

    allow, masked_equal = 0x7FFF0000, 7
    refuse, unknown = 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
    filter_ = ctypes.c_void_p(lib.seccomp_init(allow))

    def rule(action: int, name: bytes, *compare: Compare) -> None:
        number = lib.seccomp_syscall_resolve_name(name)
        table = (Compare * max(1, len(compare)))(*compare)
        assert lib.seccomp_rule_add_array(filter_, ctypes.c_uint32(action), number,
                                          len(compare), table) == 0

    rule(unknown, b"clone3")
    rule(refuse, b"unshare")
    for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000):  # user, mount, pid, network
        rule(refuse, b"clone", Compare(0, masked_equal, flag, flag))
    assert lib.seccomp_load(filter_) == 0


def processor_seconds(pid: int) -> float:
    """User and system time of a process; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="", help="of OnADevice")
    parser.add_argument("--out", default="", help="of OnADevice: a line of JSON for each verdict")
    parser.add_argument("--skip", action="extend", nargs="+", default=[], help="of OnADevice: leave programs out")
    parser.add_argument("--only", action="extend", nargs="+", default=[], help="of OnADevice: leave all others out")
    options, rest = parser.parse_known_args()
    OnADevice.device, OnADevice.out = options.device, options.out
    OnADevice.skip, OnADevice.only = options.skip, options.only
    sys.argv = sys.argv[:1] + rest
    harness.main()
