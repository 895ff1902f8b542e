# SPDX-License-Identifier: Apache-2.0
"""Help, version, misspelt words and output that cannot be written."""
from __future__ import annotations

import os
import unittest

import harness

COMMANDS = ("describe", "optimize", "bench", "baselines", "compare", "resume", "runs", "show", "report", "handout",
            "import", "export", "eval", "certify", "check", "new",
            "docs", "doctor")


class Help(harness.Case):
    def test_every_command_has_help_with_an_example(self) -> None:
        for command in COMMANDS:
            with self.subTest(command=command):
                result = self.cutegen(command, "--help")
                self.assert_code(result, 0)
                self.assertIn(f"cutegen {command}", result.out)
                self.assertIn("Example", result.out)
                self.assertIn("--json", result.out)
                self.assertEqual(result.err, "")

    def test_the_overview_names_every_command(self) -> None:
        for arguments in ((), ("--help",)):
            result = self.cutegen(*arguments)
            self.assert_code(result, 0)
            for command in COMMANDS:
                self.assertRegex(result.out, rf"(?m)^  {command} ")

    def test_version(self) -> None:
        result = self.cutegen("--version")
        self.assert_code(result, 0)
        self.assertRegex(result.out, r"^cutegen \d+\.\d+\.\d+\n$")

    def test_no_line_of_help_is_wider_than_a_wide_terminal(self) -> None:
        for command in COMMANDS:
            for line in self.cutegen(command, "--help").out.splitlines():
                self.assertLessEqual(len(line), 120, f"{command}: {line}")


class Mistakes(harness.Case):
    def test_an_unknown_command_gets_the_nearest(self) -> None:
        self.assert_error(self.cutegen("optimise", "x.py"), 2, "no command 'optimise'",
                          "did you mean 'optimize'")

    def test_an_unknown_command_far_from_all_gets_the_list(self) -> None:
        self.assert_error(self.cutegen("frobnicate"), 2, "frobnicate", "describe, optimize")

    def test_a_misspelt_option_gets_the_nearest(self) -> None:
        self.assert_error(self.cutegen("optimize", "x.py", "--devise", "sim:h200"), 2,
                          "cutegen optimize", "--devise", "did you mean --device")

    def test_a_missing_argument_names_the_help(self) -> None:
        self.assert_error(self.cutegen("describe"), 2, "cutegen describe", "--help")

    def test_an_error_is_one_json_document_on_request(self) -> None:
        result = self.cutegen("optimise", "--json")
        self.assert_code(result, 2)
        error = result.json()["error"]
        self.assertEqual(error["kind"], "user")
        self.assertIn("optimise", error["message"])
        self.assertEqual(result.err, "")

    def test_terminal_escapes_in_arguments_do_not_reach_the_terminal(self) -> None:
        result = self.cutegen("\x1b[31mred\x1b]0;title\x07")
        self.assert_code(result, 2)
        self.assertNotIn("\x1b", result.err)
        self.assertNotIn("\x07", result.err)


class Output(harness.Case):
    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_full_disk_is_an_error(self) -> None:
        with open("/dev/full", "wb") as full:
            result = self.cutegen("--help", stdout=full)
        self.assert_error(result, 6, "cannot write the result", "no space left")

    def test_a_reader_that_left_is_none(self) -> None:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as closed:
            result = self.cutegen("--help", stdout=closed)
        self.assert_code(result, 0)
        self.assertEqual(result.err, "")

    def test_doctor_speaks_json(self) -> None:
        result = self.cutegen("doctor", "--json")
        self.assertIn(result.code, (0, 6), str(result))
        report = result.json()
        self.assertEqual(report["schema"], "cutegen.doctor.v1")
        self.assertEqual(report["ready"], result.code == 0)
        for check in report["checks"]:
            self.assertIn(check["state"], ("ok", "warning", "missing"))
            self.assertEqual(check["state"] == "ok", check["mend"] == "", check)

    def test_doctor_says_what_mends_a_machine_without_cutegens_parts(self) -> None:
        empty = self.folder / "empty"
        empty.mkdir()
        result = self.cutegen("doctor", env={"CUTEGEN_SHARE": str(empty),
                                             "CUTEGEN_PYTHON": str(empty / "python")})
        self.assert_code(result, 6)
        self.assertIn("missing", result.out)
        self.assertIn("->", result.out)


if __name__ == "__main__":
    harness.main()
