# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 serial
"""Hostile and broken programs: each gets its verdict, and nothing is left running.

tests/attacks/NAME holds a program and expected.json: status, the rung that ends the ladder, and a
pattern of the headline. One evaluator judges them all, so that each also shows that the one before
did no harm; an honest program is the first and the last.
"""
import json
import re

import harness

ATTACKS = harness.ROOT / "tests/attacks"
CORRECT, REJECTED = 0, 4


class Attacks(harness.Case):
    def check(self, name, verdict):
        expected = json.loads((ATTACKS / name / "expected.json").read_text())
        told = json.dumps(verdict, indent=1)
        self.assertEqual(verdict["status"], expected["status"], told)
        self.assertRegex(verdict["feedback"]["headline"],
                         re.compile(expected["headline"], re.IGNORECASE), told)
        ended = [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"]
        if expected["rung"]:
            self.assertEqual(ended, [expected["rung"]], told)
        self.assertLess(len(verdict["feedback"]["detail"]), 1600, told)

    def test_every_attack_gets_its_verdict(self):
        names = sorted(p.parent.name for p in ATTACKS.glob("*/expected.json"))
        names = ["control"] + [n for n in names if n != "control"] + ["control"]
        result = self.cutegen("eval", ATTACKS / "task.py", *(ATTACKS / n for n in names), "--json",
                              timeout=500)
        self.assert_code(result, REJECTED)  # of the first that is not correct: assembler_file
        verdicts = result.json()["verdicts"]
        self.assertEqual(len(verdicts), len(names))
        for name, entry in zip(names, verdicts):
            with self.subTest(name):
                self.check(name, entry["verdict"])

    def test_the_exit_code_is_the_status(self):
        for name, code in (("control", CORRECT), ("keeps_state", 4), ("refused_shape", 5)):
            with self.subTest(name):
                self.assert_code(
                    self.cutegen("eval", ATTACKS / "task.py", ATTACKS / name, "--up-to", "load"),
                    code)


if __name__ == "__main__":
    harness.main()
