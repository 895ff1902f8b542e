# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=25
"""`--strategy stark` with a scripted model: grounded changes, an answer outside its spans, a failed program that is
repaired, and runs that are killed and resumed."""
from __future__ import annotations

import crash
import harness
import killing
import models
from harness import Json

CHANGE = "CHANGE: other sizes\nMore blocks hide more latency.\nSPAN plan.json\n"
OUTSIDE = models.program("elsewhere", addend="1.0f + 0.0f", grid=48, block=64)
RULES = [models.rule("Your turn: plan one change", [CHANGE] * 40),
         models.rule("Your turn: plan", ["APPROACH 1: a loop over the grid\nThreads take neighbours.\n"] * 10),
         models.rule("Change only the lines from BEGIN",
                     [OUTSIDE, *(models.program(f"grid {g}", grid=g, block=128) for g in range(16, 336, 8))]),
         models.rule("", [models.program("the constant", addend="2.0f"), models.program("the right constant"),
                          *(models.program(f"block {b}", grid=12, block=b) for b in range(32, 1024, 32))])]


class Stark(killing.Case):
    evaluations = 6

    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))

    def command(self, server: harness.ModelServer, name: str) -> list[object]:
        return ["optimize", self.task, "--strategy", "stark", "--model", models.MODEL,
                "--model-url", server.base + "/v1", "--runs", self.folder / name, "--dialect", "cuda",
                "--out", self.folder / (name + "-out"), "--evaluations", self.evaluations, "--budget-usd", 5,
                "--tools", "off", "--json"]

    def calm(self, name: str) -> tuple[Json, list[Json]]:
        """The result of an undisturbed run, and the questions that it asked."""
        with models.scripted(self.folder, RULES) as server:
            result = self.cutegen(*self.command(server, name), env=self.keys, timeout=400)
            self.assert_code(result, 0)
            return result.json(), server.log()

    def check_replay(self, name: str, run: str) -> None:
        result = self.cutegen("optimize", "--replay", run, "--runs", self.folder / name, timeout=200)
        self.assert_code(result, 0)

    def test_changes_stay_inside_their_spans(self) -> None:
        result, log = self.calm("calm")
        self.assertEqual(result["best"]["status"], "correct")
        asked = [str(entry["body"]) for entry in log]
        self.assertTrue(any("plan one change" in text for text in asked), "no change was planned")
        self.assertTrue(any("outside" in text.lower() for text in asked), "nothing was said of the wrong answer")
        journal = crash.Journal(self.folder / "calm")
        self.assertEqual(len(journal.judged()), self.evaluations)
        kept = [data["candidate"]["program"] for kind, data in journal.events
                if kind == "answered" and "candidate" in data]
        self.assertFalse(any("1.0f + 0.0f" in str(program) for program in kept))
        self.check_replay("calm", journal.runs[0])

    def test_a_killed_run_goes_on_where_it_was(self) -> None:
        calm, _ = self.calm("calm")
        self.assertEqual(calm["best"]["status"], "correct")
        self.check_kills(self.command, RULES, crash.Journal(self.folder / "calm"))


if __name__ == "__main__":
    harness.main()
