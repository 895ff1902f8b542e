# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=50
"""Runs whose model is a scripted server, which produces faults on request.

The model first writes no program, then one that does not compile, one with wrong values, a slow correct one, a faster
one, a slower one, a cheat, and the fastest. The run must end with the fastest and know its cost. It must do the same if
the server fails at random and the process is killed.

A longer test, with every kind of fault: python3 tests/e2e/models.py LongRun --steps 60 --kills 50
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import random
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import harness
from harness import Json

KEY = "sk-end-to-end-secret-0123456789"
MODEL = "anthropic:claude-opus-4-5"

SOURCE = """extern "C" __global__ void go(const float* x, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i];
    out[i] = (v < 0.0f ? 0.0f : v) + %s;
  }
}
"""


def program(summary: str, addend: str = "1.0f", grid: int = 8, block: int = 32) -> str:
    plan = {"cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"],
            "symbols": {"n": "size(x)"},
            "steps": [{"id": "go", "kernel": "go", "grid": [grid, 1, 1], "block": [block, 1, 1],
                       "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]}
    return (f"SUMMARY: {summary}\nWHY: for the test\n\n```file kernel.cu\n{SOURCE % addend}```\n"
            f"```file plan.json\n{json.dumps(plan)}\n```\n")


# Replies in the order of the questions, whichever role asks.
REPLIES = [
    "APPROACH 1: grid-stride loop\nEach thread walks over the tensor.\n",
    "I would write a simple loop.\n",
    program("a loop over the grid", addend="one"),
    program("the constant", addend="2.0f"),
    "PROBLEM: the constant is wrong\nWHY: the reference adds 1\nFIX: add 1.0f\n",
    program("the right constant"),
    program("fill the device", grid=64, block=128),
    program("one block", grid=1, block=128),
    program("a cheat", addend="1.0f; static __device__ int calls; calls++", grid=512, block=128),
    program("larger blocks", grid=256, block=256),
]


USAGE = {"input": 2000, "cached": 8000, "cache_written": 100, "output": 500}
CALL_USD = 0.027125  # 2000 at 5, 8000 at 0.5, 100 at 6.25, 500 at 25 dollars a million


def rule(when: str, texts: Iterable[str]) -> Json:
    return {"when": when, "replies": [{"text": text, "reasoning": "thinking", "usage": USAGE}
                                      for text in texts]}


def scripted(folder: Path, rules: list[Json] | None = None, **script: Any) -> harness.ModelServer:
    return harness.ModelServer(folder, [], rules=rules or [rule("", REPLIES)], **script)


class Models(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))
        self.keys = {"ANTHROPIC_API_KEY": KEY}

    def arguments(self, server: harness.ModelServer, name: str) -> list[object]:
        return ["optimize", self.task, "--model", MODEL, "--model-url", server.base + "/v1",
                "--runs", self.folder / name, "--out", self.folder / (name + "-out"), "--dialect", "cuda",
                "--chains", 1, "--evaluations", 7, "--budget-usd", 2, "--json"]

    @staticmethod
    def steps(run: Json) -> list[tuple[object, ...]]:
        return [(s["program_id"], s["status"], s["decision"], s["time_ns"]) for s in run["steps"]]

    def calm_run(self) -> tuple[Json, list[Json]]:
        with scripted(self.folder) as server:
            result = self.cutegen(*self.arguments(server, "calm"), env=self.keys, timeout=400)
            self.assert_code(result, 0)
            return result.json(), server.log()

    def rough_run(self, kills: Iterable[int]) -> tuple[Json, list[Json]]:
        """Random faults, and a SIGKILL after each number of requests in `kills`."""
        with scripted(self.folder, chaos={"rate": 0.2, "seed": 11}) as server:
            command = self.arguments(server, "rough")
            for after in kills:
                process = self.start(*command, env=self.keys)
                end = time.monotonic() + 200
                while len(server.log()) < after and time.monotonic() < end and process.poll() is None:
                    time.sleep(0.05)
                process.kill()
                process.communicate()
                command = ["resume", "--runs", self.folder / "rough", "--json"]
            result = self.cutegen(*command, env=self.keys, timeout=400)
            self.assert_code(result, 0)
            return result.json(), server.log()

    def test_a_run_through_every_disorder_ends_like_a_calm_one(self) -> None:
        calm, asked = self.calm_run()
        self.check_calm(calm, asked)
        rough, log = self.rough_run((3, 7, 12))
        self.assertEqual(self.steps(rough), self.steps(calm))
        self.assertEqual(rough["best"]["program_id"], calm["best"]["program_id"])
        self.assertGreater(len({entry["did"] for entry in log}), 2, "faults did strike")
        self.assertGreaterEqual(rough["models"]["usd"], calm["models"]["usd"] - 1e-9)
        self.assertLessEqual(rough["models"]["usd"], 2)
        self.check_replay()
        self.check_report()
        self.check_no_key()

    def check_calm(self, run: Json, asked: list[Json]) -> None:
        statuses = [s["status"] for s in run["steps"]]
        self.assertEqual(statuses, ["failed", "failed", "correct", "correct", "correct", "rejected",
                                    "correct"])
        self.assertEqual(run["best"]["id"], "c7")
        self.assertEqual([s["decision"] for s in run["steps"]][2:],
                         ["accepted", "accepted", "rejected", "rejected", "accepted"])
        self.assertEqual(len(asked), len(REPLIES), "every question once")
        self.assertAlmostEqual(run["models"]["usd"], len(REPLIES) * CALL_USD, places=9)
        for entry in asked:
            self.assertEqual(entry["headers"]["x-api-key"], KEY)
            self.assertIn("cache_control", entry["body"]["system"][-1])

    def check_replay(self) -> None:
        again = self.cutegen("optimize", "--replay", "last", "--runs", self.folder / "rough", timeout=240)
        self.assert_code(again, 0)
        self.assertIn("every action and every answer is as recorded", again.out)

    def check_report(self) -> None:
        page = self.folder / "report.html"
        self.assert_code(self.cutegen("report", "last", "--runs", self.folder / "calm", "--out", page), 0)
        self.assertIn("larger blocks", page.read_text())

    def check_no_key(self) -> None:
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(KEY.encode(), path.read_bytes(), path)

    def run_with_budget(self, usd: float) -> tuple[Json, list[Json]]:
        with scripted(self.folder) as server:
            arguments = self.arguments(server, f"budget-{usd}")
            arguments[arguments.index("--budget-usd") + 1] = usd
            run = self.cutegen(*arguments, env=self.keys, timeout=400).json()
            self.assertIn("budget: dollars", run["reason"])
            self.assertLessEqual(run["models"]["usd"], usd)
            return run, server.log()

    def test_the_budget_ends_a_run_with_what_it_has(self) -> None:
        run, asked = self.run_with_budget(0.01)
        self.assertEqual(asked, [], "a call that does not fit is not sent")
        reserved = float(self.match(r"may cost \$([0-9.]+)", run["reason"])[1])
        run, asked = self.run_with_budget(round(reserved + 0.1, 4))
        self.assertTrue(0 < len(asked) < len(REPLIES))

    def test_what_cannot_go_well_is_said_before_anything_is_sent(self) -> None:
        with scripted(self.folder) as server:
            arguments = self.arguments(server, "none")
            plain = [a for a in arguments if a != "--json"]
            refused = [("--model-url", "ftp://x", "http"), ("--model", "antropic:x", "did you mean"),
                       ("--model", "openai:unheard-of", "knows no price")]
            for flag, value, says in refused:
                wrong = list(plain)
                wrong[wrong.index(flag) + 1] = value
                self.assert_error(self.cutegen(*wrong, env=self.keys, timeout=100), 2, says)
            self.assertEqual(server.log(), [])


def long_programs(steps: int) -> list[str]:
    """Programs in rounds: a gain, one that does not compile, a wrong one, a slow one, a cheat, ..."""
    out = []
    for number in range(steps + 20):
        threads = 64 << (number // 6)
        block = min(256, threads // 2)
        gain = program(f"{threads} threads", grid=max(1, threads // block), block=block)
        text = [gain, program("a slip", addend="one"), program("wrong", addend="2.0f"),
                program("one block", grid=1, block=32),
                program("a cheat", addend="1.0f; static __device__ int calls; calls++"),
                "I would think about it some more.\n"][number % 6]
        out.append(text.replace("    out[i] =", f"    // {number}\n    out[i] ="))
    return out


class LongRun(harness.Case):
    """Only on request: a run of many steps with every kind of fault, killed many times."""

    steps, kills, seed = 0, 0, 1
    budget_usd = 60
    faults = ["status", "overloaded", "close", "cut", "clean_cut", "bad_json", "error_event",
              "error_inside", "html", "garbage", "flood", "silent", "stall", "stall_mid"]
    enough_steps = 60  # for a fifth of the calls to be faults of every kind

    def setUp(self) -> None:
        super().setUp()
        if not self.steps:
            self.skipTest("takes long; give --steps and --kills")
        self.task = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))
        self.keys = {"ANTHROPIC_API_KEY": KEY}
        self.rules = [rule("Your turn: (judge|diagnose)", ["PROBLEM: a slip\nFIX: mend it\n"]),
                      rule("", ["APPROACH 1: grid-stride loop\n", *long_programs(self.steps)])]

    def command(self, server: harness.ModelServer, name: str) -> list[object]:
        return ["optimize", self.task, "--model", MODEL, "--model-url", server.base + "/v1",
                "--runs", self.folder / name, "--out", self.folder / (name + "-out"), "--dialect", "cuda",
                "--chains", 1, "--evaluations", self.steps, "--budget-usd", self.budget_usd, "--json"]

    def calm_run(self) -> Json:
        with scripted(self.folder, self.rules) as server:
            result = self.cutegen(*self.command(server, "calm"), env=self.keys, timeout=1200)
            self.assert_code(result, 0)
            return result.json()

    def rough_run(self) -> tuple[Json, collections.Counter[str]]:
        """SIGKILL ends the process repeatedly, while it starts, asks or evaluates."""
        chance, resume = random.Random(self.seed), ["resume", "--runs", self.folder / "rough", "--json"]
        with scripted(self.folder, self.rules, chaos={"rate": 0.2, "seed": self.seed,
                                                    "kinds": self.faults}) as server:
            command, killed = self.command(server, "rough"), 0
            while killed < self.kills:
                process, asked = self.start(*command, env=self.keys), self.count("call_started")
                judged = self.count("evaluated") + chance.choice([0, 0, 1])
                if asked and chance.random() < 0.5:  # while it starts, or soon after
                    time.sleep(chance.uniform(0, 2))
                else:
                    self.wait_until(process, lambda: self.count("call_started") > asked)
                    self.wait_until(process, lambda: self.count("evaluated") >= judged)
                    time.sleep(chance.uniform(0, 0.2))
                # Too many faults in a row end a process with code 6, not the run.
                self.assertIn(process.poll(), (None, 6), "the run ended before enough kills")
                killed += process.poll() is None
                process.kill()
                process.communicate()
                self.assertEqual(self.left_beside(server.process.pid), [], "the engine had left children")
                command = resume
            for _ in range(5):
                result = self.cutegen(*command, env=self.keys, timeout=3000)
                if result.code != 6:
                    break
            self.assert_code(result, 0)
            return result.json(), collections.Counter(entry["did"] for entry in server.log())

    def count(self, kind: str) -> int:
        """Events of a type in the journal of the rough run."""
        if not (self.folder / "rough" / "cutegen.db").exists():
            return 0
        with sqlite3.connect(f"file:{self.folder}/rough/cutegen.db?mode=ro", uri=True) as db:
            try:
                return db.execute("SELECT count(*) FROM events WHERE type = ?", (kind,)).fetchone()[0]
            except sqlite3.Error:  # not made yet
                return 0

    @staticmethod
    def wait_until(process: harness.Process, reached: Callable[[], bool], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not reached() and time.monotonic() < end and process.poll() is None:
            time.sleep(0.1)

    @staticmethod
    def left_beside(server: int, seconds: float = 10) -> list[int]:
        """The processes, besides the server, that still run after a while."""
        end = time.monotonic() + seconds
        while True:
            harness.reap()
            left = [pid for pid in harness.descendants(os.getpid()) if pid != server]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.05)

    def test_the_result_and_the_money_are_those_of_a_calm_run(self) -> None:
        calm = self.calm_run()
        self.assertEqual(len(calm["steps"]), self.steps)
        rough, did = self.rough_run()
        self.assertEqual(Models.steps(rough), Models.steps(calm))
        self.assertEqual(rough["best"]["program_id"], calm["best"]["program_id"])
        self.assertEqual(rough["reason"], calm["reason"])
        if self.steps >= self.enough_steps:
            self.assertEqual(set(self.faults) - set(did), set(), "every kind of fault did strike")
        money = self.money()
        print(f"{self.steps} evaluations, {self.kills} kills; the server: {dict(did)}\n"
              f"calm: {calm['models']}\nrough: {rough['models']}\n{money}", file=sys.stderr)
        self.assertAlmostEqual(rough["models"]["usd"], money["paid"], places=9)
        self.assertEqual(money["answered_twice"], 0)
        # Beyond the calm run's cost, the rough run paid only for answers that broke off.
        self.assertAlmostEqual(money["paid"] - money["cut"], calm["models"]["usd"], places=9)
        self.assertLessEqual(money["paid"] + money["reserved"], self.budget_usd)

    def money(self) -> dict[str, float]:
        """The costs in the journal, read without cutegen."""
        with sqlite3.connect(f"file:{self.folder}/rough/cutegen.db?mode=ro", uri=True) as db:
            events = [(kind, json.loads(text)) for kind, text in db.execute(
                "SELECT type, json FROM events WHERE type LIKE 'call_%' ORDER BY seq")]
        started = {d["call"]: d for kind, d in events if kind == "call_started"}
        ended = [d for kind, d in events if kind == "call_ended"]
        replies = [d for d in ended if "reply" in d]
        whole = collections.Counter(d["request_hash"] for d in replies if d["reply"]["stop"] != "cut")
        for data in ended:
            started.pop(data["call"])
        return {"calls": len(ended), "paid": sum(d["reply"]["cost_usd"] for d in replies),
                "cut": sum(d["reply"]["cost_usd"] for d in replies if d["reply"]["stop"] == "cut"),
                "answered_twice": sum(n - 1 for n in whole.values()),
                "open": len(started), "reserved": sum(d["reserved_usd"] for d in started.values())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=True,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=0, help="evaluations of the long form")
    parser.add_argument("--kills", type=int, default=0, help="kill -9 of the long form")
    parser.add_argument("--seed", type=int, default=1)
    options, rest = parser.parse_known_args()
    LongRun.steps, LongRun.kills, LongRun.seed = options.steps, options.kills, options.seed
    sys.argv = sys.argv[:1] + rest
    harness.main()
