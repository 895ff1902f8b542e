# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=55
"""`--strategy astra` with a scripted model: proposed tests, rounds from a CUDA kernel and from a PyTorch module,
hostile proposals, and runs that are killed and resumed.

A commit chooses one of the three shipped tasks; CUTEGEN_ALL_CASES=1 takes all of them. CUTEGEN_KILLS=60 kills more
often than the default does.
"""
from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import crash
import harness
import kernel_tasks
import models
from harness import Json

TASKS = harness.ROOT / "tasks/astra"
ONE_COLUMN: Json = {
    "cases": [{"name": "one column", "sizes": {"size": 1}, "why": "rows of one element"},
              {"name": "zeros", "values": {"x": {"low": -1, "high": 1, "edges": [0]}}}]}
HOSTILE: list[Json] = [
    {"cases": []}, {"cases": [{"sizes": {"size": 0}}]}, {"cases": [{"sizes": {"size": -3}}]},
    {"cases": [{"sizes": {"size": 10**30}}]}, {"cases": [{"values": {"x": {"low": -1e300, "high": 1}}}]},
    {"cases": [{"sizes": {"size": n}} for n in range(1, 9)]}, {"cases": [{"sizes": {"nothing": 4}}]},
    {"cases": "many"}, {"cases": [{"sizes": {"size": 2}, "code": "__global__ void f() {}"}]}]
SUGGESTION = "BOTTLENECK: few blocks\nCHANGE: more blocks\nRISK: none\n"
# Right at every shape of the evaluator's own, wrong at one column.
TRAP = models.program("a special case", addend="(n == 64 ? 1.5f : 1.0f)", grid=24)


def answer(tests: Json) -> str:
    return f"Here are tests.\n```json\n{json.dumps(tests)}\n```\n"


def change(summary: str, path: str, value: object) -> str:
    return f"SUMMARY: {summary}\nWHY: for the test\n\n```plan\n{json.dumps([{'path': path, 'value': value}])}\n```\n"


def rules(testers: list[str], coders: list[str]) -> list[Json]:
    return [models.rule("Your turn: propose tests", testers), models.rule("cases", testers),
            models.rule("Your turn: suggest", [SUGGESTION] * 40), models.rule("", coders)]


BLOCKS = [change(f"block {b}", "/steps/0/block/0", b) for b in range(32, 1024, 32)]


class Astra(harness.Case):
    kills, seed, evaluations = int(os.environ.get("CUTEGEN_KILLS", 3)), 1, 6

    def setUp(self) -> None:
        super().setUp()
        self.keys = {"ANTHROPIC_API_KEY": models.KEY}
        self.write("reference.py", harness.ADD.replace("4096", "8192"))
        self.write("add.toml", kernel_tasks.SIDE)
        self.kernel = self.write("add.cu", kernel_tasks.KERNEL)
        self.module = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))

    def command(self, server: harness.ModelServer, task: str | Path, name: str, *more: object) -> list[object]:
        return ["optimize", task, "--strategy", "astra", "--model", models.MODEL,
                "--model-url", server.base + "/v1", "--runs", self.folder / name, "--dialect", "cuda",
                "--out", self.folder / (name + "-out"), "--evaluations", self.evaluations, "--budget-usd", 5,
                "--tools", "off", "--json", *more]

    def run_it(self, task: str | Path, name: str, script: list[Json],
               *more: object) -> tuple[Json, crash.Journal, list[str]]:
        """The result, the journal, and the questions that the model received."""
        with models.scripted(self.folder, script) as server:
            result = self.cutegen(*self.command(server, task, name, *more), env=self.keys, timeout=600)
            self.assert_code(result, 0)
            asked = [str(entry["body"]["messages"]) for entry in server.log()]
        replayed = self.cutegen("optimize", "--replay", "last", "--runs", self.folder / name, timeout=200)
        self.assert_code(replayed, 0)
        return result.json(), crash.Journal(self.folder / name), asked

    @staticmethod
    def data_of(journal: crash.Journal, kind: str) -> list[Json]:
        return [data for name, data in journal.events if name == kind]

    def test_proposed_tests_go_with_every_evaluation(self) -> None:
        script = rules([answer(ONE_COLUMN)], [models.program("a loop"), TRAP, *BLOCKS])
        run, journal, asked = self.run_it(self.module, "tests", script)
        self.assertEqual(run["best"]["status"], "correct")
        for started in self.data_of(journal, "evaluation_started"):
            self.assertEqual([t["name"] for t in started["tests"]], ["one column", "zeros"])
        verdicts = [data["verdict"] for data in self.data_of(journal, "evaluated")]
        self.assertEqual(verdicts[1]["status"], "failed")
        self.assertIn("proposed one column", verdicts[1]["feedback"]["headline"])
        self.assertNotIn("proposed", str([v["skipped"] for v in verdicts]))
        suggested = [text for text in asked if "Your turn: suggest" in text]
        self.assertTrue(all("one column: size = 1; rows of one element" in text for text in suggested))
        self.assertIn("Your turn: suggest a repair", "".join(suggested))
        without = self.run_it(self.module, "without", rules([answer({"cases": []})], [TRAP, *BLOCKS]))[1]
        first = self.data_of(without, "evaluated")[0]["verdict"]
        self.assertEqual(first["status"], "correct", "the evaluator's own tests do not have one column")

    def test_hostile_proposals_are_asked_again_and_cost_no_evaluation(self) -> None:
        for start in harness.some(*range(0, len(HOSTILE), 3)):
            with self.subTest(start):
                script = rules([answer(hostile) for hostile in HOSTILE[start:start + 3]], BLOCKS)
                _, journal, asked = self.run_it(self.kernel, f"hostile{start}", script, "--rounds", 1)
                outcome = self.data_of(journal, "answered")[0]
                self.assertEqual(outcome["outcome"], "unusable")
                self.assertIn("cases", outcome["reason"])
                self.assertEqual(journal.judged(), ["c1", "c2"])
                self.assertNotIn("tests", self.data_of(journal, "evaluation_started")[0])
                for text in asked[1:3]:
                    self.assertIn("cutegen could not apply your answer", text)

    def test_a_second_proposal_is_used_except_for_a_test_that_is_too_large(self) -> None:
        cases = {"cases": [{"name": "too large", "sizes": {"size": 10**6}}, ONE_COLUMN["cases"][0]]}
        script = rules([answer(HOSTILE[1]), answer(cases)], BLOCKS)
        _, journal, _ = self.run_it(self.kernel, "second", script, "--rounds", 1)
        self.assertEqual(self.data_of(journal, "answered")[0]["outcome"], "advised")
        names = [test["name"] for test in self.data_of(journal, "evaluation_started")[0]["tests"]]
        self.assertEqual(names, ["too large", "one column"])
        for data in self.data_of(journal, "evaluated"):
            self.assertEqual(data["verdict"]["status"], "correct")
            skipped = str(data["verdict"]["skipped"])
            self.assertIn("proposed test 'too large': size = 1000000 is not from 1 to 8192", skipped)
            self.assertNotIn("one column", skipped)

    def test_tests_that_the_source_kernel_fails_are_dropped(self) -> None:
        self.write("add.cu", kernel_tasks.KERNEL.replace("+ 1.0f", "+ (n == 64 ? 2.0f : 1.0f)"))
        run, journal, _ = self.run_it(self.kernel, "dropped", rules([answer(ONE_COLUMN)], BLOCKS), "--rounds", 1)
        self.assertEqual(run["best"]["status"], "correct")
        self.assertEqual(journal.judged(), ["c1", "c1", "c2"])
        reason = self.data_of(journal, "accepted")[0]["reason"]
        self.assertIn("the proposed tests are not used", reason)
        self.assertIn("proposed one column", reason)

    def test_as_published_five_rounds_go_on_from_the_newest(self) -> None:
        self.evaluations = 20
        script = rules([answer(ONE_COLUMN)], [BLOCKS[7], models.program("one block", grid=1, block=32), *BLOCKS])
        _, journal, asked = self.run_it(self.kernel, "published", script, "--published")
        self.assertEqual(journal.judged(), ["c1", "c2", "c3", "c4", "c5", "c6"])
        parents = [data["context"]["parent"] for data in self.data_of(journal, "asked") if data["role"] == "coder"]
        self.assertEqual(parents, ["c1", "c2", "c3", "c4", "c5"])
        self.assertNotIn("Attempts", asked[-1])

    def test_the_three_tasks(self) -> None:
        """A shipped task, from its simple version. The coder answers with the production-grade version."""
        for name in harness.in_turn(dict.fromkeys(kernel_tasks.VECTORS), 3):
            with self.subTest(name):
                sizes = {"tokens": 3, **({"dim": 128} if "merge" in name else {"hidden": 4096})}
                tests = {"cases": [{"name": "three rows", "sizes": sizes}]}
                source, plan = kernel_tasks.vectors(name)
                coder = (f"SUMMARY: vectors\nWHY: for the test\n\n```file kernel.cu\n{source}```\n"
                         f"```file plan.json\n{json.dumps(plan)}\n```\n")
                run, journal, asked = self.run_it(TASKS / f"{name}.cu", name, rules([answer(tests)], [coder]),
                                                  "--rounds", 1)
                verdicts = [data["verdict"] for data in self.data_of(journal, "evaluated")]
                self.assertEqual([v["status"] for v in verdicts], ["correct"] * 2, verdicts[-1]["feedback"])
                self.assertNotIn("proposed", str([v["skipped"] for v in verdicts]))
                self.assertIn("is bound by", "".join(asked), "the planner sees no diagnosis")
                gain = run["steps"][0]["time_ns"] / run["best"]["time_ns"]
                self.assertGreater(gain, 1.3)
                print(f"{name}: {gain:.2f} x", file=sys.stderr)

    def test_a_killed_run_goes_on_where_it_was(self) -> None:
        script = rules([answer(ONE_COLUMN)], [TRAP, *BLOCKS])
        _, calm, _ = self.run_it(self.kernel, "calm", script)
        killed = resumed = number = 0
        while killed < self.kills:
            self.assertLess(number, self.kills, "the runs end before they are killed")
            journal, kills = self.disturbed(f"rough{number}", script, min(4, self.kills - killed), len(calm.events))
            self.check_journal(journal, calm)
            killed, resumed, number = killed + kills, resumed + journal.count("resumed"), number + 1
        self.assertGreater(resumed, 0)
        print(f"{killed} kills of {number} runs, {resumed} resumed", file=sys.stderr)

    def disturbed(self, name: str, script: list[Json], most: int, length: int) -> tuple[crash.Journal, int]:
        """Runs to the end a run that is killed at random moments, up to `most` times, and resumed after each."""
        chance, kills, runs = random.Random(f"{self.seed} {name}"), 0, self.folder / name
        resume = ["resume", "--runs", runs, "--json"]
        with models.scripted(self.folder, script) as server:
            command = self.command(server, self.kernel, name)
            while kills < most:
                before = self.events(runs)
                process = self.start(*command, env=self.keys)
                self.wait_for_events(process, runs, len(before) + chance.randint(0, length // 3))
                harness.time.sleep(chance.uniform(0, 0.6))
                ended = process.poll() is not None
                process.kill()
                process.communicate()
                self.assertEqual(self.events(runs)[:len(before)], before, "the journal lost an event")
                if self.began(name):
                    command = resume
                if ended:
                    break
                kills += 1
            result = self.cutegen(*command, env=self.keys, timeout=600)
            asked = [str(entry["body"]["messages"]) for entry in server.log()]
        self.assertIn(result.code, (0, 2), result)  # 2: the last process had ended the run
        self.assertLessEqual(len(asked) - len(set(asked)), kills, "more was asked again than was under way")
        replayed = self.cutegen("optimize", "--replay", "last", "--runs", runs, timeout=200)
        self.assert_code(replayed, 0)
        return crash.Journal(runs), kills

    def check_journal(self, journal: crash.Journal, calm: crash.Journal) -> None:
        self.assertEqual(len(journal.runs), 1)
        self.assertEqual(journal.events[-1][0], "finished")
        self.assertEqual(len(calm.judged()), self.evaluations)
        self.assertEqual(journal.judged(), calm.judged(), "a program was evaluated twice, or never")
        paid = [data["request_hash"] for data in self.data_of(journal, "call_ended") if "reply" in data]
        self.assertEqual(len(set(paid)), len(paid), "an answer was paid twice")
        for kind, key in (("answered", "candidate"), ("finished", "best")):
            self.assertEqual(*([data.get(key) for data in self.data_of(j, kind)] for j in (journal, calm)))

    @staticmethod
    def events(runs: Path) -> list[crash.Event]:
        """What the journal has now; nothing if there is no journal yet."""
        try:
            return crash.Journal(runs).events if (runs / "cutegen.db").exists() else []
        except harness.sqlite3.Error:
            return []

    def wait_for_events(self, process: harness.Process, runs: Path, count: int) -> None:
        while process.poll() is None and len(self.events(runs)) < count:
            harness.time.sleep(0.02)

    def began(self, name: str) -> bool:
        """Whether there is a run to resume, as the program sees it."""
        listed = self.cutegen("runs", "--runs", self.folder / name, "--json")
        return listed.code == 0 and bool(listed.json()["runs"])


if __name__ == "__main__":
    harness.main()
