# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 serial
"""`--strategy astra` with a scripted model: proposed tests, rounds from a CUDA kernel and from a PyTorch module, hostile
proposals, and runs that are killed and resumed.

A long form: python3 tests/e2e/astra.py Astra.test_a_killed_run_goes_on_where_it_was --kills 60
"""
import argparse
import json
import random
import sys

import crash
import harness
import kernel_tasks
import models

TASKS = harness.ROOT / "tasks/astra"
ONE_COLUMN = {"cases": [{"name": "one column", "sizes": {"size": 1}, "why": "rows of one element"},
                        {"name": "zeros", "values": {"x": {"low": -1, "high": 1, "edges": [0]}}}]}
HOSTILE = [{"cases": []}, {"cases": [{"sizes": {"size": 0}}]}, {"cases": [{"sizes": {"size": -3}}]},
           {"cases": [{"sizes": {"size": 10**30}}]}, {"cases": [{"values": {"x": {"low": -1e300, "high": 1}}}]},
           {"cases": [{"sizes": {"size": n}} for n in range(1, 9)]}, {"cases": [{"sizes": {"nothing": 4}}]},
           {"cases": "many"}, {"cases": [{"sizes": {"size": 2}, "code": "__global__ void f() {}"}]}]
SUGGESTION = "BOTTLENECK: few blocks\nCHANGE: more blocks\nRISK: none\n"
# Right at every shape of the evaluator's own, wrong at one column.
TRAP = models.program("a special case", addend="(n == 64 ? 1.5f : 1.0f)", grid=24)


def answer(tests):
    return f"Here are tests.\n```json\n{json.dumps(tests)}\n```\n"


def change(summary, path, value):
    return f"SUMMARY: {summary}\nWHY: for the test\n\n```plan\n{json.dumps([{'path': path, 'value': value}])}\n```\n"


def rules(testers, coders):
    return [models.rule("Your turn: propose tests", testers), models.rule("cases", testers),
            models.rule("Your turn: suggest", [SUGGESTION] * 40), models.rule("", coders)]


BLOCKS = [change(f"block {b}", "/steps/0/block/0", b) for b in range(32, 1024, 32)]


class Astra(harness.Case):
    kills, seed, evaluations = 4, 1, 6

    def setUp(self):
        super().setUp()
        self.keys = {"ANTHROPIC_API_KEY": models.KEY}
        self.write("reference.py", harness.ADD.replace("4096", "8192"))
        self.write("add.toml", kernel_tasks.SIDE)
        self.kernel = self.write("add.cu", kernel_tasks.KERNEL)
        self.module = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))

    def command(self, server, task, name, *more):
        return ["optimize", task, "--strategy", "astra", "--model", models.MODEL,
                "--model-url", server.base + "/v1", "--runs", self.folder / name, "--dialect", "cuda",
                "--out", self.folder / (name + "-out"), "--evaluations", self.evaluations, "--budget-usd", 5,
                "--tools", "off", "--json", *more]

    def run_it(self, task, name, script, *more):
        """The result, the journal, and what was asked."""
        with models.scripted(self.folder, script) as server:
            result = self.cutegen(*self.command(server, task, name, *more), env=self.keys, timeout=600)
            self.assert_code(result, 0)
            asked = [str(entry["body"]["messages"]) for entry in server.log()]
        replayed = self.cutegen("optimize", "--replay", "last", "--runs", self.folder / name, timeout=200)
        self.assert_code(replayed, 0)
        return result.json(), crash.Journal(self.folder / name), asked

    @staticmethod
    def data_of(journal, kind):
        return [data for name, data in journal.events if name == kind]

    def test_proposed_tests_go_with_every_evaluation(self):
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

    def test_hostile_proposals_are_asked_again_and_cost_no_evaluation(self):
        for number, hostile in enumerate(HOSTILE):
            with self.subTest(str(hostile)[:60]):
                script = rules([answer(hostile)] * 4, BLOCKS)
                _, journal, asked = self.run_it(self.kernel, f"hostile{number}", script, "--rounds", 1)
                outcomes = [(data["outcome"], data.get("reason", "")) for data in self.data_of(journal, "answered")]
                self.assertEqual(outcomes[0][0], "unusable")
                self.assertIn("cases", outcomes[0][1])
                self.assertEqual(journal.judged(), ["c1", "c2"])
                self.assertNotIn("tests", self.data_of(journal, "evaluation_started")[0])
                self.assertIn("cutegen could not apply your answer", asked[1])

    def test_a_second_proposal_may_be_good(self):
        script = rules([answer(HOSTILE[1]), answer(ONE_COLUMN)], BLOCKS)
        _, journal, _ = self.run_it(self.kernel, "second", script, "--rounds", 1)
        self.assertEqual(self.data_of(journal, "answered")[0]["outcome"], "advised")
        self.assertIn("tests", self.data_of(journal, "evaluation_started")[0])

    def test_tests_that_cannot_be_are_skipped_and_say_why(self):
        endless = {"cases": [{"name": "too large", "sizes": {"size": 10**6}},
                             {"name": "one column", "sizes": {"size": 1}}]}
        _, journal, _ = self.run_it(self.kernel, "skipped", rules([answer(endless)], BLOCKS), "--rounds", 1)
        for data in self.data_of(journal, "evaluated"):
            self.assertEqual(data["verdict"]["status"], "correct")
            self.assertRegex(str(data["verdict"]["skipped"]),
                             "proposed test 'too large': size = 1000000 is not from 1 to 8192")

    def test_tests_that_the_source_kernel_fails_are_dropped(self):
        self.write("add.cu", kernel_tasks.KERNEL.replace("+ 1.0f", "+ (n == 64 ? 2.0f : 1.0f)"))
        run, journal, _ = self.run_it(self.kernel, "dropped", rules([answer(ONE_COLUMN)], BLOCKS), "--rounds", 1)
        self.assertEqual(run["best"]["status"], "correct")
        self.assertEqual(journal.judged(), ["c1", "c1", "c2"])
        reason = self.data_of(journal, "accepted")[0]["reason"]
        self.assertIn("the proposed tests are not used", reason)
        self.assertIn("proposed one column", reason)

    def test_as_published_five_rounds_go_on_from_the_newest(self):
        self.evaluations = 20
        script = rules([answer(ONE_COLUMN)], [BLOCKS[7], models.program("one block", grid=1, block=32), *BLOCKS])
        _, journal, asked = self.run_it(self.kernel, "published", script, "--published")
        self.assertEqual(journal.judged(), ["c1", "c2", "c3", "c4", "c5", "c6"])
        parents = [data["context"]["parent"] for data in self.data_of(journal, "asked") if data["role"] == "coder"]
        self.assertEqual(parents, ["c1", "c2", "c3", "c4", "c5"])
        self.assertNotIn("Attempts", asked[-1])

    def test_the_three_tasks(self):
        """Each shipped task, from its simple version, in two rounds, one of which is a gain."""
        steps = {"silu_and_mul": [512, 1024], "fused_add_rmsnorm": [512, 256], "merge_attn_states_lse": [32, 64]}
        for name, blocks in steps.items():
            with self.subTest(name):
                sizes = {"tokens": 3, **({"dim": 128} if "merge" in name else {"hidden": 4096})}
                tests = {"cases": [{"name": "three rows", "sizes": sizes}]}
                coders = [change(f"block {b}", "/steps/0/block/0", b) for b in blocks]
                run, journal, asked = self.run_it(TASKS / f"{name}.cu", name, rules([answer(tests)], coders),
                                                  "--rounds", 2)
                self.assertEqual(journal.judged(), ["c1", "c2", "c3"])
                statuses = [data["verdict"]["status"] for data in self.data_of(journal, "evaluated")]
                self.assertEqual(statuses, ["correct"] * 3)
                self.assertNotIn("proposed", str(self.data_of(journal, "evaluated")[0]["verdict"]["skipped"]))
                self.assertIn("is bound by", "".join(asked), "the planner sees no diagnosis")
                self.assertLessEqual(run["best"]["time_ns"], run["steps"][0]["time_ns"])
                print(f"{name}: {run['steps'][0]['time_ns'] / run['best']['time_ns']:.2f} x", file=sys.stderr)

    def test_a_killed_run_goes_on_where_it_was(self):
        self.evaluations = 8
        script = rules([answer(ONE_COLUMN)], [TRAP, *BLOCKS])
        self.run_it(self.kernel, "first", script)  # fills the cache, so that the next one has the usual speed
        began = harness.time.monotonic()
        calm, _, _ = self.run_it(self.kernel, "calm", script)
        length_s = harness.time.monotonic() - began
        killed = resumed = number = 0
        while killed < self.kills:
            journal, kills = self.disturbed(f"rough{number}", script, 0.7 * length_s)
            self.check_journal(journal, calm)
            killed, resumed, number = killed + kills, resumed + journal.count("resumed"), number + 1
        print(f"{killed} kills of {number} runs of {length_s:.1f} s, {resumed} resumed", file=sys.stderr)

    def disturbed(self, name, script, longest_s):
        """A run that is killed up to four times at random moments, and resumed to its end."""
        chance, kills = random.Random(f"{self.seed} {name}"), 0
        resume = ["resume", "--runs", self.folder / name, "--json"]
        with models.scripted(self.folder, script) as server:
            command = self.command(server, self.kernel, name)
            while kills < 4:
                before = crash.committed(self.folder / name)
                process = self.start(*command, env=self.keys)
                harness.time.sleep(chance.uniform(0.2, longest_s))
                ended = process.poll() is not None
                process.kill()
                process.communicate()
                if self.began(name):
                    command = resume
                if ended:
                    break
                kills += 1
                self.assertEqual(crash.committed(self.folder / name)[:len(before)], before, "a verdict was lost")
            result = self.cutegen(*command, env=self.keys, timeout=600)
        self.assertIn(result.code, (0, 2), result)  # 2: the last process had ended the run
        replayed = self.cutegen("optimize", "--replay", "last", "--runs", self.folder / name, timeout=200)
        self.assert_code(replayed, 0)
        return crash.Journal(self.folder / name), kills

    def check_journal(self, journal, calm):
        self.assertEqual(len(journal.runs), 1)
        judged = journal.judged()
        self.assertEqual(len(judged), self.evaluations)
        self.assertEqual(len(set(judged)), len(judged), "a program was evaluated twice")
        paid = [data["request_hash"] for data in self.data_of(journal, "call_ended") if "reply" in data]
        self.assertEqual(len(set(paid)), len(paid), "an answer was paid twice")
        self.assertEqual(self.data_of(journal, "finished")[0]["best"], calm["best"]["id"])

    def began(self, name):
        """Whether there is a run to resume, as the program sees it."""
        listed = self.cutegen("runs", "--runs", self.folder / name, "--json")
        return listed.code == 0 and bool(listed.json()["runs"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--kills", type=int, default=Astra.kills)
    parser.add_argument("--seed", type=int, default=Astra.seed)
    options, rest = parser.parse_known_args()
    Astra.kills, Astra.seed = options.kills, options.seed
    sys.argv = sys.argv[:1] + rest
    harness.main()
