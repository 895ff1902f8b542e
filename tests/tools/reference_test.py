# SPDX-License-Identifier: Apache-2.0
"""tools/reference.py: the pages of docs/reference agree with the code, and the check finds a page that differs."""
from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("CUTEGEN_BIN", ROOT / "build/release/bin"))
sys.path.insert(0, str(ROOT / "tools"))
import reference  # noqa: E402

OVERVIEW = """cutegen: a program.
Usage: cutegen [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help message and exit

Subcommands:
  optimize                    find a fast kernel program
  runs                        list runs, and a meaning
                              that goes on

Start here:
  cutegen doctor              what is missing
"""
HELP = """find a fast kernel program
Usage: cutegen optimize [OPTIONS] [FILE]

Options:
  --device TEXT               where programs run (default sim:h200)
  --devices TEXT              another option
  --runs,--runs-dir TEXT      journals of runs
  --require-sandbox           refuse to run
"""
CONFIG = """constexpr Declared kDeclared[] = {
    {.key = "device", .type = Type::text, .fallback = "sim:h200", .meaning = "where programs run"},
    {.key = "runs_dir",
     .type = Type::text,
     .fallback = "",
     .meaning = "journals "
                "of runs"},
    {.key = "math_mode", .type = Type::choice, .fallback = "", .meaning = "rounding", .choices = "fp32 tf32"},
};
"""
EVENTS = """constexpr Form kTypes[] = {
    {.type = EventType::opened,
     .version = 1,
     .written = "first",
     .fields = "file: the task file\\n"
               "asked?: bounds: "
               "two numbers"},
    {.type = EventType::resumed, .version = 2, .written = "when a process goes on", .fields = ""},
};
"""


class Commands(unittest.TestCase):
    def test_commands_come_from_the_overview_in_its_order(self) -> None:
        self.assertEqual(reference.commands_of(OVERVIEW), {
            "optimize": "find a fast kernel program", "runs": "list runs, and a meaning that goes on"})

    def test_the_page_has_each_help_word_for_word(self) -> None:
        page = reference.commands_page(OVERVIEW, {"optimize": HELP})
        self.assertIn(OVERVIEW, page)
        self.assertIn("## optimize\n\n```text\n$ cutegen optimize --help\n" + HELP, page)

    def test_a_program_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(reference.ReferenceFault, "make build"):
            reference.Program(Path("/nowhere"))


class Settings(unittest.TestCase):
    def settings(self) -> dict[str, reference.Setting]:
        found = reference.settings_of(CONFIG)
        for setting in found:
            reference.find_flags(setting, {"optimize": HELP})
        return {setting.key: setting for setting in found}

    def test_rows_are_read_with_their_flags_and_commands(self) -> None:
        device, runs, mode = self.settings().values()
        self.assertEqual((device.default, device.flags, device.commands), ("sim:h200", "--device", ["optimize"]))
        self.assertEqual((runs.meaning, runs.flags), ("journals of runs", "--runs, --runs-dir"))
        self.assertEqual((runs.variable, mode.kind(), mode.commands), ("CUTEGEN_RUNS_DIR", "`fp32`, `tf32`", []))

    def test_a_row_that_cannot_be_read_is_a_fault(self) -> None:
        with self.assertRaisesRegex(reference.ReferenceFault, "cannot read"):
            reference.settings_of(CONFIG.replace('"sim:h200"', "kDefault"))
        with self.assertRaisesRegex(reference.ReferenceFault, "no table"):
            reference.settings_of("nothing")

    def test_a_setting_that_nothing_reads_is_said_to_have_no_effect(self) -> None:
        device = self.settings()["device"]
        device.is_read = reference.is_read(device, ['config.text("device")'])
        self.assertNotIn("no effect", reference.settings_page([device]))
        device.is_read = reference.is_read(device, ['config.text("devices")'])
        self.assertIn("no effect", reference.settings_page([device]))


class Plan(unittest.TestCase):
    def setUp(self) -> None:
        self.schema = json.loads((ROOT / "schemas/plan.v1.json").read_text(encoding="utf-8"))

    def test_every_field_of_the_schema_is_on_the_page(self) -> None:
        page = reference.plan_page(self.schema)
        objects = [self.schema, *self.schema["definitions"].values()]
        names = [name for node in objects for name in node.get("properties", {})]
        self.assertGreater(len(names), 40)
        for name in names:
            self.assertIn(f"| `{name}` |", page)

    def test_lines_of_a_description_are_paragraphs_and_items_of_a_list(self) -> None:
        self.schema["definitions"]["expression"]["description"] = "one of:\n\n- " + "a " * 70 + "\n- b\n\nor none"
        page = reference.plan_page(self.schema)
        self.assertIn("\n\nOne of:\n\n- a a", page)
        self.assertIn("a\n  a a", page)
        self.assertIn("a\n- b\n\nor none.\n", page)

    def test_a_field_without_a_description_and_an_object_without_a_title_are_faults(self) -> None:
        del self.schema["properties"]["bind"]["description"]
        with self.assertRaisesRegex(reference.ReferenceFault, "'bind' of the plan has no description"):
            reference.plan_page(self.schema)
        self.schema["properties"]["bind"]["description"] = "x"
        self.schema["definitions"]["novel"] = {"properties": {}}
        with self.assertRaisesRegex(reference.ReferenceFault, "novel"):
            reference.plan_page(self.schema)


class Events(unittest.TestCase):
    def test_rows_are_read_with_their_fields(self) -> None:
        opened, resumed = reference.events_of(EVENTS)
        self.assertEqual([(f.name, f.always, f.meaning) for f in opened.fields],
                         [("file", True, "the task file"), ("asked", False, "bounds: two numbers")])
        self.assertEqual((resumed.version, resumed.written, resumed.fields), (2, "when a process goes on", []))

    def test_a_row_that_cannot_be_read_is_a_fault(self) -> None:
        for broken in (EVENTS.replace("file: the", "file the"), EVENTS.replace(".version = 1,", ".version = kFirst,")):
            with self.assertRaises(reference.ReferenceFault):
                reference.events_of(broken)

    def test_events_that_differ_from_the_table(self) -> None:
        opened = reference.events_of(EVENTS)[0]
        self.assertEqual(list(opened.faults({"file": "x", "clock_ms": 1})), [])
        self.assertEqual(len(list(opened.faults({"file": "x", "novel": 1}))), 1)
        self.assertIn("lacks its field 'file'", list(opened.faults({"asked": {}}))[0])

    def test_the_golden_journals_are_as_the_table_says(self) -> None:
        types, seen = reference.event_types(ROOT), set()
        for path in sorted((ROOT / "tests/golden/engine").glob("journal*.json")):
            for event in json.loads(path.read_text(encoding="utf-8")):
                self.assertEqual(list(types[event["type"]].faults(event["data"])), [], path.name)
                seen.add(event["type"])
        self.assertGreater(len(seen), 10)


class Journals(unittest.TestCase):
    """What harness.py reports about the journals of an e2e test."""

    def faults(self, *events: tuple[str, int, str]) -> list[str]:
        sys.path.insert(0, str(ROOT / "tests/e2e"))
        import harness
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "home/runs/cutegen.db")
            path.parent.mkdir(parents=True)
            with contextlib.closing(sqlite3.connect(path)) as base, base:
                base.execute("CREATE TABLE events(run, seq, type, version, json)")
                base.executemany("INSERT INTO events VALUES ('r', 1, ?, ?, ?)", events)
            Path(folder, "cutegen.db").write_text("no journal" * 100, encoding="utf-8")
            return harness.journal_faults(folder)

    def test_fields_that_the_table_lacks_or_that_an_event_lacks(self) -> None:
        good = json.dumps({"candidate": "c1", "reason": "faster", "clock_ms": 3})
        self.assertEqual(self.faults(("accepted", 1, good), ("novel", 1, "{}"), ("accepted", 2, "{}")), [])
        self.assertEqual(len(self.faults(("accepted", 1, '{"candidate": "c1", "reason": "", "novel": 1}'))), 1)
        self.assertEqual(len(self.faults(("accepted", 1, "{}"))), 2)


class Environment(unittest.TestCase):
    def test_variables_that_the_page_lacks_or_makes_up(self) -> None:
        code = ['getenv("CUTEGEN_NCU")', 'getenv("CUTEGEN_DEVICE")', 'getenv("CUTEGEN_GATE_OPENING")']
        settings = reference.settings_of(CONFIG)
        faults = lambda page: list(reference.environment_faults(page, code, settings))  # noqa: E731
        self.assertEqual(faults("| `CUTEGEN_NCU` | x |\n"), [])
        self.assertIn("lacks CUTEGEN_NCU", faults("")[0])
        self.assertIn("names CUTEGEN_DEVICE", faults("| `CUTEGEN_NCU` | x |\n| `CUTEGEN_DEVICE` | x |\n")[0])


@unittest.skipUnless((BIN / "cutegen").exists(), f"no program {BIN}/cutegen: build first, or set CUTEGEN_BIN")
class Pages(unittest.TestCase):
    def check(self, root: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-B", ROOT / "tools/reference.py", "--check", "--bin", BIN, root],
                              capture_output=True, text=True, check=False)

    def test_the_committed_pages_are_what_the_code_says(self) -> None:
        done = self.check(ROOT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_changed_page_is_found_and_written_anew(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("src/base/config.cpp", "src/store/events.cpp", "schemas/plan.v1.json", "docs/reference"):
                target = Path(folder, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, target)
                else:
                    shutil.copy(ROOT / name, target)
            page = Path(folder, "docs/reference/plan.md")
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace("number of blocks along x, y and z", "blocks"), encoding="utf-8")
            done = self.check(folder)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"docs/reference/plan\.md:\d+: error: is not what the code says")
            subprocess.run([sys.executable, "-B", ROOT / "tools/reference.py", "--bin", BIN, folder],
                           capture_output=True, check=False)
            self.assertEqual(page.read_text(encoding="utf-8"), text)


if __name__ == "__main__":
    unittest.main()
