# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=75
"""A run from beginning to end: optimize, runs, show, report, replay, Ctrl-C and resume."""
from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import harness
from harness import Json


class Runs(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.runs = self.folder / "runs"
        self.task = self.write("softmax.py", harness.SOFTMAX)

    def on_runs(self, *arguments: object, **settings: Any) -> harness.Result:
        return self.cutegen(*arguments, "--runs", self.runs, timeout=240, **settings)

    def optimize(self, *more: object, **settings: Any) -> harness.Result:
        return self.on_runs("optimize", self.task, "--evaluations", 3, "--out", "best", *more, **settings)

    def test_a_run_and_everything_that_shows_it(self) -> None:
        result = self.optimize()
        self.assert_code(result, 0)
        self.assertEqual(result.err, "", "a pipe gets no live progress")
        for part in (r"floor +\d.*no kernel is faster", r"baseline +none", r"sandbox", r"admitted +yes",
                     r"c1 .*1\.00x .*better", r"stopped +budget: evaluations", r"best +c\d, .*modelled",
                     r"limits +times are modelled", r"written .*best"):
            self.assertRegex(result.out, part)
        self.assertNotRegex(result.out, "[\x1b\r]")
        self.assertEqual(sorted(os.listdir(self.folder / "best")),
                         ["kernel.cu", "plan.json", "verdict.json"])
        run = self.match(r"cutegen report (\S+)", result.out)[1]
        self.check_listing(run)
        self.check_show(run)
        self.check_report(run)
        self.check_replay(run)

    def check_listing(self, run: str) -> None:
        listing = self.on_runs("runs", "--json").json()
        self.assertEqual(listing["schema"], "cutegen.runs.v1")
        self.assertEqual([(r["run"], r["state"], r["evaluations"]) for r in listing["runs"]],
                         [(run, "finished", 3)])
        self.assertRegex(self.on_runs("runs").out, run + " +finished +softmax")

    def check_show(self, run: str) -> None:
        page = self.on_runs("show", run[9:], "--json").json()
        self.assertEqual(page["schema"], "cutegen.run.v1")
        self.assertEqual([s["id"] for s in page["steps"]], ["c1", "c2", "c3"])
        self.assertEqual(page["best"]["time_origin"], "modelled")
        self.assertEqual(page["config"]["budget_evaluations"],
                         {"value": "3", "source": "flag --budget-evaluations"})
        self.assertIn("correctness  passed", self.on_runs("show", "last", "c2").out)
        self.assertRegex(self.on_runs("show", "last", "c2", "--diff").out, r"(?m)^\+\+\+ \S+\n")
        source = self.on_runs("show", "last", "--source").out
        self.assertIn("==> plan.json <==", source)
        self.assertIn((self.folder / "best" / "kernel.cu").read_text(), source)
        self.assert_error(self.on_runs("show", "last", "c9"), 2, "no candidate 'c9'", "c1 to c3")

    def check_report(self, run: str) -> None:
        self.assertIn("page.html", self.on_runs("report", run, "-o", "page.html").out)
        page = (self.folder / "page.html").read_text()
        for part in ("<svg", "Task and bounds", "difference from c1", "How to reproduce", run):
            self.assertIn(part, page)
        for part in ("<script", "http:", "https:"):
            self.assertNotIn(part, page)
        self.assertEqual(self.on_runs("report", run, "-o", "-").out, page)

    def check_replay(self, run: str) -> None:
        self.assert_code(self.on_runs("optimize", "--replay", run), 0)
        with sqlite3.connect(self.runs / "cutegen.db") as db:
            seq, text = db.execute("SELECT seq, json FROM events WHERE type = 'accepted'"
                                   " ORDER BY seq DESC").fetchone()
            data = json.loads(text)
            data["reason"] = "because"
            db.execute("UPDATE events SET json = ? WHERE run = ? AND seq = ?",
                       (json.dumps(data), run, seq))
        result = self.on_runs("optimize", "--replay", run)
        self.assert_error(result, 2, f"diverges at event {seq}", "because", "another version")

    def alter(self, seq: int, change: Callable[[Json], object]) -> str:
        """Changes the data of one event in the database directly."""
        with sqlite3.connect(self.runs / "cutegen.db") as db:
            text, = db.execute("SELECT json FROM events WHERE seq = ?", (seq,)).fetchone()
            data = json.loads(text)
            change(data)
            db.execute("UPDATE events SET json = ? WHERE seq = ?", (json.dumps(data), seq))
        return text

    def verdict_of(self, candidate: str) -> int:
        with sqlite3.connect(self.runs / "cutegen.db") as db:
            for seq, text in db.execute("SELECT seq, json FROM events WHERE type = 'evaluated'"):
                if json.loads(text)["candidate"] == candidate:
                    return seq
        return self.fail(f"{candidate} was not evaluated")

    def test_below_the_wanted_speed_and_evaluated_again(self) -> None:
        result = self.optimize("--json", "--fail-under", "1000")
        self.assert_code(result, 7)
        document = result.json()
        self.assertEqual(document["schema"], "cutegen.run.v1")
        self.assertEqual(document["exit_code"], 7)
        self.assertEqual(document["evaluations"], 3)
        self.assertEqual(document["verdict"]["status"], "correct")
        self.check_evaluating_again()

    def check_evaluating_again(self) -> None:
        again = ("optimize", "--replay", "last", "--re-evaluate", "--json")
        calm = self.on_runs(*again)
        self.assert_code(calm, 0)
        document = calm.json()
        self.assertTrue(document["identical"])
        self.assertEqual(document["evaluations"], 3)
        self.assertLess(document["largest_change"], 0.05)
        seq = self.verdict_of("c2")

        def faster(data: Json) -> None:
            data["verdict"]["timing"]["time_ns"] /= 2
        before = self.alter(seq, faster)
        result = self.on_runs(*again)
        self.assert_code(result, 3)
        found = result.json()["divergence"]
        self.assertEqual((found["step"], found["field"], found["event"]),
                         ("c2", "verdict/time_ns", seq))
        self.assertNotEqual(found["recorded"], found["now"])
        told = self.on_runs(*again[:-1])
        self.assert_code(told, 3)
        self.assertRegex(told.out, rf"diverges +c2, event {seq}, verdict/time_ns: recorded .*; now ")
        self.alter(seq, lambda data: data.update(json.loads(before)))
        self.alter(seq, lambda data: data["verdict"].update(status="failed"))
        found = self.on_runs(*again).json()["divergence"]
        self.assertEqual((found["step"], found["field"]), ("c2", "verdict/status"))
        self.assertRegex(found["recorded"], "^failed")
        self.assertRegex(found["now"], "^correct")
        self.assert_error(self.on_runs("optimize", self.task, "--re-evaluate"), 2, "--replay run")
        self.assert_error(self.on_runs("optimize", "--replay", "last", "--tolerance", 3), 2,
                          "--tolerance", "give both")

    def test_no_recipe_is_said_after_a_full_description(self) -> None:
        file = self.write("conv.py", harness.ADD.replace("torch.relu(x) + 1.0", "torch.digamma(x)"))
        result = self.on_runs("optimize", file)
        self.assert_code(result, 3)
        self.assertRegex(result.out, r"floor +\d")
        self.assertRegex(result.out, r"stopped +no recipe: .*digamma")

    def test_ctrl_c_and_resume(self) -> None:
        process = self.start("optimize", self.task, "--evaluations", 4, "--runs", self.runs)
        self.wait_for_event("evaluation_started")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertLess(time.monotonic() - began, 10)
        self.assertRegex(out.decode(), r"cutegen resume \d+-\w+")
        self.assertEqual(harness.wait_for_none(), {})
        self.assertEqual(self.on_runs("runs", "--json").json()["runs"][0]["state"], "interrupted")
        result = self.on_runs("resume", "--json")
        self.assert_code(result, 0)
        self.assertEqual(result.json()["evaluations"], 4)
        again = self.on_runs("resume")
        self.assert_code(again, 0)
        self.assertIn("budget: evaluations", again.out)

    def test_a_changed_task_is_not_resumed(self) -> None:
        file = self.write("task.py", harness.ADD)
        process = self.start("optimize", file, "--runs", self.runs)
        self.wait_for_event("evaluation_started")
        rival = self.on_runs("resume")
        self.assert_error(rival, 2, f"being written by process {process.pid}")
        process.kill()
        process.communicate()
        harness.wait_for_none()
        self.write("task.py", harness.ADD.replace("+ 1.0", "+ 2.0"))
        self.assert_error(self.on_runs("resume"), 2, "the task has changed")

    def wait_for_event(self, kind: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with sqlite3.connect(f"file:{self.runs}/cutegen.db?mode=ro", uri=True) as db:
                    if db.execute("SELECT 1 FROM events WHERE type = ?", (kind,)).fetchone():
                        return
            except sqlite3.Error:
                pass
            time.sleep(0.02)
        self.fail(f"no event {kind} in {seconds} s")

    def test_a_terminal_sees_progress(self) -> None:
        master, slave = pty.openpty()
        process = self.start("optimize", self.task, "--evaluations", 1, "--runs", self.runs, stderr=slave)
        os.close(slave)
        process.communicate(timeout=240)
        seen = b""
        try:
            while chunk := os.read(master, 65536):
                seen += chunk
        except OSError:
            pass
        os.close(master)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"describing softmax.py", seen)
        self.assertIn(b"c1 first program", seen)
        self.assertTrue(seen.endswith(b"\r\x1b[K"), "the status line is left behind")


class Folders(harness.Case):
    def test_a_database_of_another_program_is_left_alone(self) -> None:
        path = self.folder / "cutegen.db"
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE mine(x)")
        before = path.read_bytes()
        self.assert_error(self.cutegen("runs", "--runs", self.folder), 2, "another program")
        self.assertEqual(path.read_bytes(), before)

    def test_a_text_file_is_no_journal(self) -> None:
        self.write("runs/cutegen.db", "just some text, and quite a lot of it, but no database\n" * 9)
        self.assert_error(self.cutegen("runs", "--runs", self.folder / "runs"), 2, "not an sqlite database")

    def test_no_runs_yet(self) -> None:
        self.assertIn("No runs yet", self.cutegen("runs").out)
        for command in ("show", "resume", "report"):
            self.assert_error(self.cutegen(command), 2, "no run", "cutegen optimize")

    def test_an_out_folder_with_other_things_is_refused(self) -> None:
        self.write("out/thesis.tex", "years of work")
        result = self.cutegen("optimize", self.write("task.py", harness.ADD))
        self.assert_error(result, 2, "thesis.tex", "--out")

    def test_settings_out_of_range(self) -> None:
        file = self.write("task.py", harness.ADD)
        for arguments in (("--evaluations", "0"), ("--evaluations", "-3"), ("--minutes", "-1"),
                          ("--strategy", "magic")):
            with self.subTest(arguments=arguments):
                self.assert_error(self.cutegen("optimize", file, *arguments), 2)


if __name__ == "__main__":
    harness.main()
