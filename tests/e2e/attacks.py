# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 serial
"""Hostile and broken programs: each gets its verdict, and nothing is left running.

tests/attacks/NAME holds a program and expected.json: status, the rung that ends the ladder, and a
pattern of the headline. One evaluator judges them all, so that each also shows that the one before
did no harm; an honest program is the first and the last.
"""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

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

    def at_work(self, process):
        """Waits until the endless loop runs: its runner has used a second of processor time."""
        end = time.monotonic() + 200
        while time.monotonic() < end and process.poll() is None:
            for pid, name in harness.descendants(process.pid).items():
                if name == "cutegen-runner" and processor_seconds(pid) > 1:
                    return
            time.sleep(0.05)
        self.fail("the program was never run")

    def start_endless(self):
        return self.start("eval", ATTACKS / "task.py", ATTACKS / "endless_loop",
                          stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def test_an_interrupt_ends_an_evaluation_at_once(self):
        process = self.start_endless()
        self.at_work(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 130)

    def test_an_evaluator_that_dies_is_started_again(self):
        process = self.start("eval", ATTACKS / "task.py", ATTACKS / "endless_loop", "--json")
        self.at_work(process)
        for pid, name in harness.descendants(process.pid).items():
            if name == "cutegen-evaluat":  # the kernel keeps 15 characters
                os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=200)
        self.assertIn(b"the evaluator died", err)
        self.check("endless_loop", json.loads(out)["verdicts"][0]["verdict"])

    def test_nothing_outlives_a_killed_command(self):
        process = self.start_endless()
        self.at_work(process)
        process.kill()
        process.wait(timeout=10)
        self.assertEqual(harness.wait_for_none(10), {})


def processor_seconds(pid):
    """User and system time of a process, 0 if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    harness.main()
