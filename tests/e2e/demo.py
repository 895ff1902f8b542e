# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=75
"""The shipped tasks from end to end, and the form of every `--json` output, compared with golden files.

A golden file lists "path: type" lines. CUTEGEN_UPDATE_GOLDEN=1 rewrites the files. Look at the difference before you
commit it, because users rely on the names of fields.
"""
from __future__ import annotations

import os
import unittest
from typing import Any

import harness
from harness import Json

GOLDEN = harness.ROOT / "tests/golden/cli"
TASKS = sorted((harness.ROOT / "tasks").glob("*.py"))
# Maps whose keys are data, so all their entries have the same form.
OPEN = ("counters", "tensors", "held", "sources", "config", "params", "origins", "terms_ns", "constants",
        "attributes", "symbols", "defines", "bind", "flops_per_s", "mma")
KINDS = {bool: "bool", int: "number", float: "number", str: "text", type(None): "null"}


def forms(value: Any, path: str = "") -> set[str]:
    """The set of "path: type" of a JSON value. Items of a list, and entries of a map with free keys, are merged."""
    if isinstance(value, dict):
        is_open = path.rsplit(".", 1)[-1] in OPEN
        found = set() if value else {f"{path}: object"}
        for key, item in value.items():
            found |= forms(item, f"{path}.{'*' if is_open else key}")
        return found
    if isinstance(value, list):
        found = set() if value else {f"{path}[]: empty"}
        for item in value:
            found |= forms(item, path + "[]")
        return found
    return {f"{path}: {KINDS[type(value)]}"}


def without_chance(document: Json) -> Json:
    """The document without degenerate solutions that pass, because on a small task one of them passes at some seeds."""
    if not document.get("admission", {}).get("passing"):
        return document
    assert forms(document["admission"]["passing"]) == {"[]: text"}
    return {**document, "admission": {**document["admission"], "passing": []}}


class Forms(unittest.TestCase):
    def test_forms_merge_items_and_keep_names(self) -> None:
        self.assertEqual(forms({"a": [{"b": 1}, {"b": 2.5, "c": None}], "counters": {"x": 1, "y": 2}}),
                         {".a[].b: number", ".a[].c: null", ".counters.*: number"})
        self.assertEqual(forms({"tensors": [{"name": "x"}], "config": {}}),
                         {".tensors[].name: text", ".config: object"})


class Demo(harness.Case):
    def assert_golden(self, name: str, document: Json) -> None:
        """The document has every field of the golden form, and no others."""
        path = GOLDEN / f"{name}.txt"
        found = sorted(forms(without_chance(document)))
        if os.environ.get("CUTEGEN_UPDATE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(found) + "\n", encoding="utf-8")
        self.assertTrue(path.exists(), f"no golden file {path}")
        wanted = path.read_text(encoding="utf-8").splitlines()
        self.assertEqual(found, wanted, f"the form of {name} --json changed")

    def json_of(self, *arguments: object, code: int = 0) -> Json:
        result = self.cutegen(*arguments, "--json", timeout=300)
        self.assert_code(result, code)
        self.assertEqual(result.err, "", "nothing else is said with --json")
        return result.json()

    def test_one_task_through_every_command(self) -> None:
        task = self.write("softmax.py", harness.SOFTMAX)
        described = self.json_of("describe", task)
        self.assert_golden("describe", described)
        outcome = self.json_of("optimize", task, "--evaluations", "3", "--out", "best")
        self.assert_golden("optimize", outcome)
        self.assertTrue((self.folder / "best/plan.json").exists())
        runs = self.json_of("runs")
        self.assert_golden("runs", runs)
        self.assert_golden("show", self.json_of("show", "last"))
        self.assert_golden("report", self.json_of("report", "last", "--out", "report.html"))
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        self.assertIn("</html>", page)
        self.assertNotRegex(page, r"(?i)(src|href)\s*=\s*[\"']?https?:", "the page is self-contained")
        self.assert_golden("replay", self.json_of("optimize", "--replay", "last"))
        self.assert_golden("check", self.json_of("check", "best"))
        verdict = self.json_of("eval", task, "best")
        self.assert_golden("eval", verdict)
        self.assertEqual(self.json_of("resume", "last")["schema"], outcome["schema"])
        self.check_profile(task)

    def check_profile(self, task: str) -> None:
        """The best program's profile as JSON, with its source lines, and as text."""
        profile = self.json_of("eval", task, "best", "--profile")["verdicts"][0]["verdict"]["profile"]
        kernel = profile["kernels"][0]
        self.assertEqual(kernel["origin"], "modelled")
        self.assertLessEqual(kernel["sample_error"], 0.5)
        source = (self.folder / "best/kernel.cu").read_text(encoding="utf-8").splitlines()
        named = [line for line in kernel["lines"] if line["line"] > 0]
        self.assertGreater(len(named), 2)
        for line in named:
            self.assertEqual(line["text"], source[line["line"] - 1].strip()[:len(line["text"])])
        self.assertGreater(sum(line["counters"]["issue_share"] for line in kernel["lines"]), 0.8)
        text = self.cutegen("eval", task, "best", "--profile")
        self.assert_code(text, 0)
        for part in (r"profile of \w+ \(modelled\): .* bound by", r"occupancy +\d+%.*limited by",
                     r"(?m)^ +line +issue +memory +shared"):
            self.assertRegex(text.out, part)

    def test_a_skeleton_compiles_and_is_found_wrong_not_broken(self) -> None:
        task = harness.ROOT / "tasks/relu.py"
        self.assert_golden("new", self.json_of("new", task, "--out", "mine"))
        self.assert_code(self.cutegen("check", "mine"), 0)
        result = self.cutegen("eval", task, "mine", "--json")
        self.assert_code(result, 3)
        self.assertNotRegex(result.out, r'"rung": *"compile", *"result": *"failed"')

    def test_json_goldens_hold_what_they_say(self) -> None:
        for path in GOLDEN.glob("*.txt"):
            lines = path.read_text(encoding="utf-8").splitlines()
            self.assertEqual(lines, sorted(set(lines)), path)
            self.assertTrue(any(line == ".schema: text" for line in lines), path)

    def test_the_doctor_is_content(self) -> None:
        self.assert_golden("doctor", self.json_of("doctor"))


class EveryTask(harness.Case):
    """A commit chooses a third of the tasks to solve; with CUTEGEN_ALL_CASES=1 all of them are solved."""

    def test_every_shipped_task_is_solved(self) -> None:
        self.assertGreaterEqual(len(TASKS), 5)
        for name, row in self.solve(harness.in_turn({task.stem: task.read_text() for task in TASKS}, 3)).items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                self.assertEqual(row.plan["cutegen"], 1)

    def test_describe_takes_them_all_at_once(self) -> None:
        result = self.cutegen("describe", *TASKS, "--json")
        self.assert_code(result, 0)
        for task in TASKS:
            self.assertIn(task.stem, result.out)


if __name__ == "__main__":
    harness.main()
