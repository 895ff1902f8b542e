# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=55
"""`--strategy astra` with a scripted model: proposed tests, rounds from a CUDA kernel and from a PyTorch module,
hostile proposals, and runs that are killed and resumed.

A commit chooses one of the three shipped tasks; CUTEGEN_ALL_CASES=1 takes all of them. killing.py has
the variables of the kills.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

import crash
import harness
import kernel_tasks
import killing
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
READING = "BOTTLENECK: too few loads are in flight\nEVIDENCE: occupancy\nLIMIT: a copy\n"
SUGGESTION = "BOTTLENECK: few blocks\nCHANGE: more blocks\nRISK: none\n"
# Correct at all shapes that the evaluator itself chooses, wrong at one column.
TRAP = models.program("a special case", addend="(n == 64 ? 1.5f : 1.0f)", grid=24)


def answer(tests: Json) -> str:
    return f"Here are tests.\n```json\n{json.dumps(tests)}\n```\n"


def change(summary: str, path: str, value: object) -> str:
    return f"SUMMARY: {summary}\nWHY: for the test\n\n```plan\n{json.dumps([{'path': path, 'value': value}])}\n```\n"


def rules(testers: list[str], coders: list[str]) -> list[Json]:
    return [models.rule("Your turn: propose tests", testers), models.rule("cases", testers),
            models.rule("Your turn: read the profile", [READING] * 40),
            models.rule("Your turn: suggest", [SUGGESTION] * 40), models.rule("", coders)]


BLOCKS = [change(f"block {b}", "/steps/0/block/0", b) for b in range(32, 1024, 32)]


class Astra(killing.Case):
    evaluations = 6

    def setUp(self) -> None:
        super().setUp()
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

    def test_proposed_tests_go_with_every_evaluation(self) -> None:
        script = rules([answer(ONE_COLUMN)], [models.program("a loop"), TRAP, *BLOCKS])
        run, journal, asked = self.run_it(self.module, "tests", script)
        self.assertEqual(run["best"]["status"], "correct")
        for started in journal.data_of("evaluation_started"):
            self.assertEqual([t["name"] for t in started["tests"]], ["one column", "zeros"])
        verdicts = [data["verdict"] for data in journal.data_of("evaluated")]
        self.assertEqual(verdicts[1]["status"], "failed")
        self.assertIn("proposed one column", verdicts[1]["feedback"]["headline"])
        self.assertNotIn("proposed", str([v["skipped"] for v in verdicts]))
        suggested = [text for text in asked if "Your turn: suggest" in text]
        self.assertTrue(all("one column: size = 1; rows of one element" in text for text in suggested))
        self.assertIn("Your turn: suggest a repair", "".join(suggested))
        without = self.run_it(self.module, "without", rules([answer({"cases": []})], [TRAP, *BLOCKS]))[1]
        first = without.data_of("evaluated")[0]["verdict"]
        self.assertEqual(first["status"], "correct", "the evaluator's own tests do not have one column")

    def test_hostile_proposals_are_asked_again_and_cost_no_evaluation(self) -> None:
        for start in harness.some(*range(0, len(HOSTILE), 3)):
            with self.subTest(start):
                script = rules([answer(hostile) for hostile in HOSTILE[start:start + 3]], BLOCKS)
                _, journal, asked = self.run_it(self.kernel, f"hostile{start}", script, "--rounds", 1)
                outcome = journal.data_of("answered")[0]
                self.assertEqual(outcome["outcome"], "unusable")
                self.assertIn("cases", outcome["reason"])
                self.assertEqual(journal.judged(), ["c1", "c2"])
                self.assertNotIn("tests", journal.data_of("evaluation_started")[0])
                for text in asked[1:3]:
                    self.assertIn("cutegen could not apply your answer", text)

    def test_a_second_proposal_is_used_except_for_a_test_that_is_too_large(self) -> None:
        cases = {"cases": [{"name": "too large", "sizes": {"size": 10**6}}, ONE_COLUMN["cases"][0]]}
        script = rules([answer(HOSTILE[1]), answer(cases)], BLOCKS)
        _, journal, _ = self.run_it(self.kernel, "second", script, "--rounds", 1)
        self.assertEqual(journal.data_of("answered")[0]["outcome"], "advised")
        names = [test["name"] for test in journal.data_of("evaluation_started")[0]["tests"]]
        self.assertEqual(names, ["too large", "one column"])
        for data in journal.data_of("evaluated"):
            self.assertEqual(data["verdict"]["status"], "correct")
            skipped = str(data["verdict"]["skipped"])
            self.assertIn("proposed test 'too large': size = 1000000 is not from 1 to 8192", skipped)
            self.assertNotIn("one column", skipped)

    def test_tests_that_the_source_kernel_fails_are_dropped(self) -> None:
        self.write("add.cu", kernel_tasks.KERNEL.replace("+ 1.0f", "+ (n == 64 ? 2.0f : 1.0f)"))
        run, journal, _ = self.run_it(self.kernel, "dropped", rules([answer(ONE_COLUMN)], BLOCKS), "--rounds", 1)
        self.assertEqual(run["best"]["status"], "correct")
        self.assertEqual(journal.judged(), ["c1", "c1", "c2"])
        reason = journal.data_of("accepted")[0]["reason"]
        self.assertIn("the proposed tests are not used", reason)
        self.assertIn("proposed one column", reason)

    def test_as_published_five_rounds_go_on_from_the_newest(self) -> None:
        self.evaluations = 20
        script = rules([answer(ONE_COLUMN)], [BLOCKS[7], models.program("one block", grid=1, block=32), *BLOCKS])
        _, journal, asked = self.run_it(self.kernel, "published", script, "--published")
        self.assertEqual(journal.judged(), ["c1", "c2", "c3", "c4", "c5", "c6"])
        parents = [data["context"]["parent"] for data in journal.data_of("asked") if data["role"] == "coder"]
        self.assertEqual(parents, ["c1", "c2", "c3", "c4", "c5"])
        self.assertNotIn("Attempts", asked[-1])
        roles = [data["role"] for data in journal.data_of("asked")]
        self.assertEqual(roles, ["tester", "source", *["profiler", "planner", "coder"] * 5])
        for text in asked:
            self.assertEqual("A profiler says:" in text, "Your turn: suggest one change" in text)
            if "A profiler says:" in text:
                self.assertIn("too few loads are in flight", text)

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
                verdicts = [data["verdict"] for data in journal.data_of("evaluated")]
                self.assertEqual([v["status"] for v in verdicts], ["correct"] * 2, verdicts[-1]["feedback"])
                self.assertNotIn("proposed", str([v["skipped"] for v in verdicts]))
                self.assertIn("is bound by", "".join(asked), "the planner sees no diagnosis")
                gain = run["steps"][0]["time_ns"] / run["best"]["time_ns"]
                self.assertGreater(gain, 1.3)
                print(f"{name}: {gain:.2f} x", file=sys.stderr)

    def test_a_task_whose_launcher_says_the_launch(self) -> None:
        """The shipped task with a host function: rounds from its kernel, then a replacement of its file."""
        tests = {"cases": [{"name": "three rows", "sizes": {"tokens": 3, "hidden": 520}}]}
        _, journal, asked = self.run_it(TASKS / "silu_and_mul_launcher.cu", "launcher",
                                        rules([answer(tests)], [change("block 128", "/steps/0/block/0", 128)]),
                                        "--rounds", 1)
        verdicts = [data["verdict"] for data in journal.data_of("evaluated")]
        self.assertEqual([v["status"] for v in verdicts], ["correct"] * 2, verdicts[-1]["feedback"])
        self.assertNotIn("proposed", str([v["skipped"] for v in verdicts]))
        source = journal.data_of("answered")[1]["candidate"]["program"]
        step = source["plan"]["steps"][0]
        self.assertEqual(step["kernel"], "silu_and_mul_kernel")
        self.assertEqual(step["grid"][0], "size(x)/dim(x,-1)")
        self.assertEqual(step["block"][0], "min(max(dim(x,-1)/2/8, 32), 1024)")
        self.assertIn("silu_and_mul_kernel_body<__half, 8>", str(source["sources"]))
        self.assertNotIn("PYBIND11_MODULE", str(asked), "the model sees host code")
        exported = self.cutegen("export", "last", "--runs", self.folder / "launcher", "--to", "source", "--out", "drop")
        self.assert_code(exported, 0)
        self.assertIn("silu_and_mul_kernel", (self.folder / "drop/silu_and_mul_launcher.cu").read_text())

    def test_a_killed_run_goes_on_where_it_was(self) -> None:
        script = rules([answer(ONE_COLUMN)], [TRAP, *BLOCKS])
        _, calm, _ = self.run_it(self.kernel, "calm", script)
        self.assertEqual(len(calm.judged()), self.evaluations)
        self.check_kills(lambda server, name: self.command(server, self.kernel, name), script, calm)


if __name__ == "__main__":
    harness.main()
