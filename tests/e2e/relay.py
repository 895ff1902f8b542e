# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=60
"""A run whose model is a folder of files, in which the test answers the questions.

The answers are prepared: prose without a program, a program that does not compile, one with wrong values, a slow
correct one, a faster one, a slower one. The run must end with the fastest.
"""
from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import harness
from harness import Json

PLAN = """{"cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"],
 "symbols": {"n": "size(x)"},
 "steps": [{"id": "go", "kernel": "go", "grid": [8, 1, 1], "block": [32, 1, 1],
            "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]}
"""

SOURCE = """extern "C" __global__ void go(const float* x, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i];
    out[i] = (v < 0.0f ? 0.0f : v) + %s;
  }
}
"""


def whole(addend: str) -> str:
    return (f"SUMMARY: a loop over the grid\nWHY: it is simple\n\n```file kernel.cu\n{SOURCE % addend}```\n"
            f"```file plan.json\n{PLAN}```\n")


def edit(before: str, after: str, summary: str = "one change") -> str:
    return (f"SUMMARY: {summary}\n\n```edit kernel.cu\n<<<<<<< SEARCH\n{before}\n=======\n{after}\n"
            ">>>>>>> REPLACE\n```\n")


def plan(*edits: Json, summary: str = "another shape of the launch") -> str:
    return f"SUMMARY: {summary}\n\n```plan\n{json.dumps(edits)}\n```\n"


# Answers in the order of the questions, each with the role that must ask.
ANSWERS = [
    ("planner", "APPROACH 1: grid-stride loop\nEach thread walks over the tensor.\n"),
    ("coder", "I would write a simple loop.\n"),
    ("coder", whole("one")),
    ("debugger", edit("+ one;", "+ 2.0f;", "the constant")),
    ("judge", "PROBLEM: the constant is wrong\nWHY: the reference adds 1\nFIX: add 1.0f\n"),
    ("debugger", edit("+ 2.0f;", "+ 1.0f;", "the right constant")),
    ("coder", plan({"path": "/steps/0/grid/0", "value": 64},
                   {"path": "/steps/0/block/0", "value": 128}, summary="fill the device")),
    ("coder", plan({"path": "/steps/0/grid/0", "value": 1}, summary="one block")),
]


class Responder(threading.Thread):
    """Answers each question of the folder with the next prepared answer."""

    def __init__(self, folder: Path, answers: Sequence[tuple[str, str]]) -> None:
        super().__init__(daemon=True)
        self.folder, self.answers, self.done = folder, answers, threading.Event()
        self.seen: list[tuple[Json, str]] = []  # each question as JSON and as a page

    def run(self) -> None:
        while not self.done.is_set():
            for page in sorted(self.folder.glob("*.request.json")):
                number = page.name.split(".")[0]
                answer = self.folder / f"{number}.answer.md"
                if not answer.exists() and len(self.seen) < len(self.answers):
                    self.seen.append((json.loads(page.read_text()),
                                      (self.folder / f"{number}.request.md").read_text()))
                    part = self.folder / f".{number}.part"
                    part.write_text(self.answers[len(self.seen) - 1][1])
                    part.rename(answer)
            time.sleep(0.05)


class Relay(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))
        self.questions = self.folder / "q"

    def optimize(self, answers: Sequence[tuple[str, str]], *more: object,
                 **settings: Any) -> tuple[harness.Result, Responder]:
        self.questions.mkdir(exist_ok=True)
        responder = Responder(self.questions, answers)
        responder.start()
        try:
            return self.cutegen("optimize", self.task, "--model", f"relay:{self.questions}", "--runs",
                                self.folder / "runs", "--out", "best", "--dialect", "cuda", "--chains", 1,
                                *more, timeout=400, **settings), responder
        finally:
            responder.done.set()
            responder.join()

    def test_answers_alone_lead_from_nothing_to_a_better_program(self) -> None:
        result, responder = self.optimize(ANSWERS, "--evaluations", 5)
        self.assert_code(result, 0)
        self.assertEqual(len(responder.seen), len(ANSWERS))
        for (request, _), (role, _) in zip(responder.seen, ANSWERS):
            self.assertIn(role, json.dumps(request)[:400])
        pages = [text for _, text in responder.seen]
        self.check_questions(pages)
        self.assertIn("+ 1.0f;", (self.questions / "0007.program/kernel.cu").read_text())
        self.assertEqual(json.loads((self.questions / "0008.program/plan.json").read_text())["steps"][0]["grid"],
                         [64, 1, 1])
        for part in (r"c1 .*failed.*one", r"c2 .*failed.*wrong", r"c3 .*1\.00x.*better", r"c4 .*better",
                     r"c5 .*no gain", r"best +c4", r"model +relay:.*8 calls.*1 answer asked again",
                     r"stopped +budget: evaluations"):
            self.assertRegex(result.out, part)
        self.check_replay()

    def check_questions(self, pages: list[str]) -> None:
        self.assertIn("torch.relu(x) + 1.0", pages[0])
        self.assertIn("APPROACH 1", pages[0])
        self.assertIn("Each thread walks over the tensor.", pages[1])
        self.assertIn("contains no block to apply", pages[2])
        self.assertRegex(pages[3], r'identifier "one" is undefined')
        self.assertRegex(pages[4], r"elements wrong")
        self.assertIn("FIX: add 1.0f", pages[5])
        self.assertRegex(pages[6], r"program above \(c3\) is correct. It is the run.s best so far")
        self.assertRegex(pages[7], r"c4 \(from c3\): fill the device -> .*kept")
        for page in pages:
            self.assertNotIn("{{", page)

    def check_replay(self) -> None:
        again = self.cutegen("optimize", "--replay", "last", "--runs", self.folder / "runs", timeout=240)
        self.assert_code(again, 0)
        self.assertIn("every action and every answer is as recorded", again.out)

    def test_a_killed_run_goes_on_where_it_was(self) -> None:
        self.questions.mkdir()
        responder = Responder(self.questions, ANSWERS[:3])
        responder.start()
        process = self.start("optimize", self.task, "--model", f"relay:{self.questions}", "--runs",
                             self.folder / "runs", "--out", "best", "--dialect", "cuda", "--chains", 1,
                             "--evaluations", 5)
        end = time.monotonic() + 200
        while not (self.questions / "0004.request.json").exists() and time.monotonic() < end:
            time.sleep(0.1)
        process.kill()
        process.communicate()
        responder.done.set()
        responder.join()
        self.assertEqual(len(list(self.questions.glob("*.request.json"))), 4)
        rest = Responder(self.questions, ANSWERS[3:])
        rest.start()
        result = self.cutegen("resume", "--runs", self.folder / "runs", timeout=400)
        rest.done.set()
        rest.join()
        self.assert_code(result, 0)
        self.assertRegex(result.out, r"best +c4")
        self.assertEqual(len(list(self.questions.glob("*.request.json"))), len(ANSWERS),
                         "the open question keeps its number")

    def test_flags_of_models_need_a_model(self) -> None:
        self.assert_error(self.cutegen("optimize", self.task, "--dialect", "cuda"), 2, "--dialect",
                          "only if a model proposes", "--model")
        self.assert_error(self.cutegen("optimize", self.task, "--model", "relay:q", "--profiling", "often"),
                          2, "--profiling", "adaptive")
        self.assert_error(self.cutegen("optimize", self.task, "--strategy", "cudaforge"), 2, "needs a model")


class Docs(harness.Case):
    def test_pages_are_listed_and_shown(self) -> None:
        listing = self.cutegen("docs")
        self.assert_code(listing, 0)
        self.assertRegex(listing.out, r"(?m)^gemm +Matrix products")
        page = self.cutegen("docs", "cutegen::combine_row")
        self.assert_code(page, 0)
        self.assertIn("MaxSumExp", page.out)
        self.assertTrue(re.search(r"__global__", page.out))
        self.assertEqual(self.cutegen("docs", "gemm", "--json").json()["schema"], "cutegen.docs.v1")
        self.assert_error(self.cutegen("docs", "combine_rov"), 2, "combine_rov", "did you mean 'combine_row'")


if __name__ == "__main__":
    harness.main()
