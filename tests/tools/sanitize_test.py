# SPDX-License-Identifier: Apache-2.0
"""tools/sanitize.sh: which modules it builds and runs. Scripts replace CMake and CTest and print their arguments."""
from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = re.findall(r'"((?:asan|tsan) [a-z ]+)"', (ROOT / "tools/sanitize.sh").read_text())
CMAKE = '#!/bin/sh\necho cmake "$@"\n'
CTEST = '#!/bin/sh\ncase "$*" in *-N*) for m in {}; do echo "  Test #1: $m"; done;; *) echo ctest "$@";; esac\n'
# Modules with unit tests: folders of src with a *_test.cpp.
MODULES = sorted({path.relative_to(ROOT / "src").parts[0] for path in (ROOT / "src").rglob("*_test.cpp")})


class Sanitize(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in (("cmake", CMAKE), ("ctest", CTEST.format(" ".join(MODULES)))):
            path = Path(folder.name) / name
            path.write_text(text)
            path.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{folder.name}:{os.environ['PATH']}"}

    def run_it(self, *arguments: str, code: int = 0) -> tuple[subprocess.CompletedProcess[str], str]:
        """The script's output, with "asan core" for a build of core_test with that sanitizer."""
        done = subprocess.run([ROOT / "tools/sanitize.sh", *arguments], capture_output=True, text=True, check=False,
                              env=self.environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        built = re.search(r"cmake --build build/(\w+) .*--target (.*)", done.stdout)
        return done, f"{built[1]} {built[2]}".replace("_test", "") if built else ""

    def test_every_part_names_modules_with_tests(self) -> None:
        self.assertGreater(len(PARTS), 5)
        for part in PARTS:
            self.assertLessEqual(set(part.split()[1:]), set(MODULES), part)

    def test_suppressions_name_functions_that_exist(self) -> None:
        text = (ROOT / "tools/tsan_suppressions.txt").read_text()
        sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.cpp"))
        names = [name.replace("cutegen::ptx::", "") for name in re.findall(r"^race:(.*)$", text, re.MULTILINE)]
        self.assertGreater(len(names), 2)
        for name in names:
            self.assertRegex(sources, rf"\b{name}\(", "tools/tsan_suppressions.txt")

    def test_without_modules_all_parts_run(self) -> None:
        for preset in ("asan", "tsan"):
            wanted = [m for part in PARTS if part.startswith(preset) for m in part.split()[1:]]
            self.assertEqual(self.run_it(preset)[1], f"{preset} {' '.join(wanted)}")

    def test_modules_by_name_and_all(self) -> None:
        self.assertEqual(self.run_it("asan", "core")[1], "asan core")
        self.assertEqual(self.run_it("tsan", "--all")[1], "tsan " + " ".join(MODULES))

    def test_a_commit_chooses_one_part(self) -> None:
        commits = subprocess.run(["git", "-C", ROOT, "rev-list", "--max-count=30", "HEAD"], capture_output=True,
                                 text=True,
                                 check=False).stdout.split()
        if not commits:
            self.skipTest("no git here")
        chosen = {commit: self.run_it("--part", commit)[1] for commit in commits}
        for commit, part in chosen.items():
            self.assertEqual(part, PARTS[int(commit[:7], 16) % len(PARTS)])
        self.assertEqual(self.run_it("--part")[1], chosen[commits[0]])

    def test_what_is_refused(self) -> None:
        self.assertIn("usage", self.run_it("msan", code=2)[0].stderr)
        self.assertIn("no tests of: nothing", self.run_it("asan", "nothing", code=1)[0].stdout)
        self.run_it("--part", "no-such-commit", code=128)


if __name__ == "__main__":
    unittest.main(verbosity=2)
