# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=60
"""Kills a run at random moments and resumes it until it is finished.

In every round, SIGKILL ends one process at a random moment: the engine, the evaluator, the runner, the compile server
(or its child) or the torch worker. The rounds take these in turn; the commit chooses the first. With
CUTEGEN_ALL_CASES=1 there is a round for each. If the engine was killed, the test resumes the run; otherwise the engine
must recover by itself. Then the test checks that no finished evaluation is lost or repeated, that the best program
equals the best one of an undisturbed run, that `--replay` agrees, and that no process is left.

Example: python3 tests/e2e/crash.py --rounds 100
"""
from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

import harness
from harness import Json

# Names of /proc/PID/stat are cut at 15 characters.
VICTIMS = {"engine": "", "evaluator": "cutegen-evaluat", "runner": "cutegen-runner",
           "compiler": "cutegen-compile", "torch worker": "python"}
LIMIT_S = 240
Event = tuple[str, Json]  # its type and its data


class Journal:
    """What the database of runs says about its only run. Reads it with SQLite, without cutegen."""

    def __init__(self, folder: Path) -> None:
        with sqlite3.connect(f"file:{folder}/cutegen.db?mode=ro", uri=True) as db:
            self.events: list[Event] = [(kind, harness.json.loads(text)) for kind, text in db.execute(
                "SELECT type, json FROM events ORDER BY run, seq")]
            self.runs = [row[0] for row in db.execute("SELECT DISTINCT run FROM events")]

    def judged(self) -> list[str]:
        """Candidates with a verdict, in order; aborted attempts do not count."""
        return [data["candidate"] for kind, data in self.events
                if kind == "evaluated" and data["verdict"]["status"] != "aborted"]

    def started(self) -> list[str]:
        return [data["candidate"] for kind, data in self.events if kind == "evaluation_started"]

    def data_of(self, kind: str) -> list[Json]:
        return [data for name, data in self.events if name == kind]

    def count(self, kind: str) -> int:
        return sum(1 for name, _ in self.events if name == kind)


def committed(folder: Path) -> list[str]:
    """The number of evaluations in the journal now; 0 if there is no journal yet."""
    try:
        return Journal(folder).judged() if (folder / "cutegen.db").exists() else []
    except sqlite3.Error:
        return []


def events_of(folder: Path) -> int:
    """The number of events in the journal now."""
    try:
        return len(Journal(folder).events) if (folder / "cutegen.db").exists() else 0
    except sqlite3.Error:
        return 0


class Crash(harness.Case):
    rounds, seed, evaluations = 5 if harness.all_cases() else 2, 1, 8

    def setUp(self) -> None:
        super().setUp()
        self.random = random.Random(self.seed)
        self.task = self.write("softmax.py", harness.SOFTMAX)
        self.hits: collections.Counter[str] = collections.Counter()
        self.cache: dict[str, str] = {}

    def command(self, runs: Path, *arguments: object) -> harness.Process:
        return self.start(*arguments, "--runs", runs, "--json", env={"CUTEGEN_LOG": "error", **self.cache})

    def optimize(self, runs: Path) -> harness.Process:
        return self.command(runs, "optimize", self.task, "--evaluations", self.evaluations,
                            "--out", self.folder / "out")

    def end(self, process: harness.Process) -> tuple[int, str, str]:
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")

    def finish(self, process: harness.Process) -> Json:
        code, out, err = self.end(process)
        self.assertEqual(code, 0, f"exit {code}\n{out[-2000:]}\n{err[-4000:]}")
        return harness.json.loads(out)

    def wait(self, process: harness.Process, runs: Path, length: int) -> None:
        """Waits until a random event of `length` is in the journal, and a moment longer. In one run of four, the task
        is still being opened.
        """
        event = self.random.randrange(length) if self.random.random() < 0.75 else 0
        while process.poll() is None and events_of(runs) < event:
            time.sleep(0.02)
        deadline = time.monotonic() + self.random.uniform(0, 0.4 if event else 4)
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.005)

    def kill_one(self, process: harness.Process, victim: str) -> bool:
        """Kills a process of the kind `victim` as soon as one exists. Returns False if none appeared."""
        while process.poll() is None:
            if victim == "engine":
                process.kill()
                return True
            found = [pid for pid, name in harness.descendants(process.pid).items()
                     if name.startswith(VICTIMS[victim])]
            try:
                if found:
                    os.kill(self.random.choice(found), signal.SIGKILL)
                    return True
            except ProcessLookupError:
                pass  # it ended by itself
            time.sleep(0.005)
        return False

    def disturbed(self, runs: Path, victim: str, length: int) -> tuple[Json, bool]:
        """Runs to the end a run in which one process is killed at a random moment. Returns the result and the killed
        process.
        """
        before, process = [], self.optimize(runs)
        self.wait(process, runs, length)
        hit = self.kill_one(process, victim)
        if victim != "engine" or not hit:
            return self.finish(process), hit
        self.end(process)
        left = harness.wait_for_none()
        self.assertEqual(left, {}, "processes outlived the killed engine")
        before = committed(runs)
        process = self.command(runs, "resume") if self.has_run(runs) else self.optimize(runs)
        result = self.finish(process)
        after = committed(runs)
        self.assertEqual(after[:len(before)], before, "a finished evaluation was lost")
        return result, hit

    @staticmethod
    def has_run(runs: Path) -> bool:
        try:
            return bool(Journal(runs).runs)
        except sqlite3.Error:
            return False

    def check(self, runs: Path, result: Json, calm: Json) -> None:
        journal = Journal(runs)
        judged = journal.judged()
        self.assertEqual(len(journal.runs), 1)
        self.assertEqual(len(judged), len(set(judged)), f"an evaluation was repeated: {judged}")
        self.assertEqual(journal.events[-1][0], "finished")
        again = len(journal.started()) - len(judged)
        aborted = journal.count("evaluated") - len(judged)
        self.assertLessEqual(again - aborted, journal.count("resumed"),
                             "more was evaluated again than was under way")
        self.assertEqual(judged, self.calm_judged)
        for key in ("program_id", "time_ns", "params", "id"):
            self.assertEqual(result["best"][key], calm["best"][key], key)
        self.assertEqual(result["reason"], calm["reason"])
        replay = self.finish(self.command(runs, "optimize", "--replay", "last"))
        self.assertTrue(replay["identical"])

    def test_kills_at_random_points(self) -> None:
        runs = self.folder / "calm"
        calm = self.finish(self.optimize(runs))
        journal = Journal(runs)
        self.calm_judged, length = journal.judged(), len(journal.events)
        length -= length // 4  # a run that is nearly over may end before it is killed
        self.assertGreaterEqual(len(self.calm_judged), 3)
        for number in range(self.rounds):
            victim = list(VICTIMS)[(harness.turn() + number) % len(VICTIMS)]
            runs = self.folder / f"run{number}"
            # A new cache, because no compile server runs if the cache has all programs.
            self.cache = {"XDG_CACHE_HOME": str(self.folder / f"cache{number}")} if victim == "compiler" else {}
            hit = False
            with self.subTest(round=number, victim=victim):
                result, hit = self.disturbed(runs, victim, length)
                self.hits[victim] += hit
                self.check(runs, result, calm)
                self.assertEqual(harness.wait_for_none(), {}, "processes were left running")
            print(f"round {number + 1}: {victim}{'' if hit else ' (none there)'}", file=sys.stderr,
                  flush=True)
        kills = ", ".join(f"{name} {self.hits[name]}" for name in VICTIMS)
        print(f"\n{self.rounds} rounds of a run of {len(journal.events)} events and {len(self.calm_judged)} "
              f"evaluations; killed: {kills}", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--rounds", type=int, default=Crash.rounds)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evaluations", type=int, default=8, help="budget of each run")
    options, rest = parser.parse_known_args()
    Crash.rounds, Crash.seed = options.rounds, options.seed
    Crash.evaluations = options.evaluations
    sys.argv = sys.argv[:1] + rest
    harness.main()
