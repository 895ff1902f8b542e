# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 serial
"""Hostile and broken programs: each gets its verdict, and nothing is left running.

tests/attacks/NAME holds a program and expected.json: status, the rung that ends the ladder, and a
pattern of the headline.
"""
import json
import re

import harness

ATTACKS = harness.ROOT / "tests/attacks"
EXIT = {"correct": 0, "failed": 3, "rejected": 4, "unsupported": 5}


class Attacks(harness.Case):
    def judge(self, name):
        expected = json.loads((ATTACKS / name / "expected.json").read_text())
        result = self.cutegen("eval", ATTACKS / "task.py", ATTACKS / name, "--json")
        self.assertEqual(result.code, EXIT[expected["status"]], str(result))
        verdict = result.json()["verdict"]
        self.assertEqual(verdict["status"], expected["status"], str(result))
        self.assertRegex(verdict["feedback"]["headline"], re.compile(expected["headline"], re.I))
        ended = [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"]
        if expected["rung"]:
            self.assertEqual(ended, [expected["rung"]], str(result))
        return verdict


def add_tests():
    for folder in sorted(p for p in ATTACKS.iterdir() if (p / "expected.json").is_file()):
        setattr(Attacks, f"test_{folder.name}",
                lambda self, name=folder.name: self.judge(name))


add_tests()

if __name__ == "__main__":
    harness.main()
