# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 cost=40
"""A journal of an earlier version opens and replays. It resumes only if its verdicts have today's policy version.

tests/fixtures/old_journal holds one finished run and one that Ctrl-C ended, written on 2026-11-23 before
kinds became enumerations and codecs became field lists. A command proposed their programs, so that no
recipe of today is in them. The test moves them to its own folder.
"""
from __future__ import annotations

import contextlib
import shutil
import sqlite3

import harness

FIXTURE = harness.ROOT / "tests" / "fixtures" / "old_journal"
WRITTEN_IN = "/tmp/cutegen_old_journal"
FINISHED, INTERRUPTED = "20261123-8mnn5s", "20261123-4t2vhr"


class OldJournal(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.runs = self.folder / "runs"
        self.runs.mkdir(mode=0o700)
        journal = self.runs / "cutegen.db"
        shutil.copy(FIXTURE / "journal.sqlite", journal)
        for name in ("task.py", "propose.py"):
            shutil.copy(FIXTURE / name, self.folder)
        with contextlib.closing(sqlite3.connect(journal)) as base:
            for table in ("events", "runs"):
                base.execute(f"UPDATE {table} SET json = replace(json, ?, ?)", (WRITTEN_IN, str(self.folder)))
            base.commit()

    def on_runs(self, *arguments: object) -> harness.Result:
        return self.cutegen(*arguments, "--runs", self.runs, timeout=240)

    def test_it_opens(self) -> None:
        listing = self.on_runs("runs", "--json").json()["runs"]
        self.assertEqual([(r["run"], r["state"], r["evaluations"]) for r in listing],
                         [(INTERRUPTED, "interrupted", 2), (FINISHED, "finished", 4)])
        page = self.on_runs("show", FINISHED, "--json").json()
        self.assertEqual([s["id"] for s in page["steps"]], ["c1", "c2", "c3", "c4"])
        self.assertEqual(page["best"]["time_origin"], "modelled")
        result = self.on_runs("report", FINISHED, "-o", "page.html")
        self.assert_code(result, 0)
        self.assertIn("sim:h200", (self.folder / "page.html").read_text())

    def test_it_replays(self) -> None:
        for run in (FINISHED, INTERRUPTED):
            result = self.on_runs("optimize", "--replay", run)
            self.assert_code(result, 0)

    def test_its_verdicts_are_not_compared_with_new_ones(self) -> None:
        before = self.on_runs("show", INTERRUPTED, "--json").json()
        refused = self.on_runs("resume", INTERRUPTED)
        self.assert_error(refused, 2, r"rules of version 3, but this cutegen has version \d+")
        self.assertIn(f"cutegen optimize {self.folder / 'task.py'}", refused.err)
        self.assertEqual(self.on_runs("show", INTERRUPTED, "--json").json(), before)
        self.assert_code(self.on_runs("resume", FINISHED), 0)

    def test_events_of_its_form_resume(self) -> None:
        """The verdicts get today's policy version; all other events keep their old form."""
        version = self.match(r"this cutegen has version (\d+)", self.on_runs("resume", INTERRUPTED).err)[1]
        with contextlib.closing(sqlite3.connect(self.runs / "cutegen.db")) as base:
            changed = base.execute("UPDATE events SET json = replace(json, ?, ?) WHERE run = ? AND type = 'evaluated'",
                                   ('"policy_version":3', f'"policy_version":{version}', INTERRUPTED))
            self.assertEqual(changed.rowcount, 2)
            base.commit()
        result = self.on_runs("resume", INTERRUPTED)
        self.assert_code(result, 0)
        self.assertRegex(result.out, r"stopped +all block sizes are tried")
        page = self.on_runs("show", INTERRUPTED, "--json").json()
        self.assertEqual([s["id"] for s in page["steps"]], ["c1", "c2", "c3", "c4"])
        self.assert_code(self.on_runs("optimize", "--replay", INTERRUPTED), 0)


if __name__ == "__main__":
    harness.main()
