# SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh and tools/missing_wheels.py, without touching the machine."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run(command: Sequence[str | Path], **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **settings)


class MissingWheels(unittest.TestCase):
    def missing(self, text: str, *flags: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "requirements.txt")
            path.write_text(text, encoding="utf-8")
            info = Path(folder, "present-1.2.dist-info")
            info.mkdir()
            (info / "METADATA").write_text("Name: present\nVersion: 1.2+cpu\n", encoding="utf-8")
            result = run([sys.executable, "-B", ROOT / "tools/missing_wheels.py", *flags, path],
                         env={**os.environ, "PYTHONPATH": folder})
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout.split()

    def test_a_local_version_satisfies_its_pin(self) -> None:
        self.assertEqual(self.missing("# why\npresent==1.2\n"), [])

    def test_another_version_and_an_absent_package_are_missing(self) -> None:
        self.assertEqual(self.missing("present==1.3\nabsent-package==1\n"),
                         ["present==1.3", "absent-package==1"])

    def test_packages_without_dependencies_are_told_apart(self) -> None:
        text = "absent-a==1\nabsent-b==2  # no-deps\n"
        self.assertEqual(self.missing(text, "--with-deps"), ["absent-a==1"])
        self.assertEqual(self.missing(text, "--no-deps"), ["absent-b==2"])

    def test_every_shipped_requirement_is_an_exact_pin(self) -> None:
        for name in ("requirements.txt", "requirements-dev.txt", "requirements-docs.txt"):
            for line in (ROOT / "tools" / name).read_text(encoding="utf-8").splitlines():
                pin = line.partition("#")[0].strip()
                self.assertTrue(not pin or pin.count("==") == 1, line)


class Setup(unittest.TestCase):
    """Runs the script in a copy of the tree, with replacements of apt, dpkg and id first on the PATH."""

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name, "tree")
        (self.root / "tools").mkdir(parents=True)
        for name in ("setup.sh", "missing_wheels.py", "requirements.txt", "requirements-dev.txt",
                     "requirements-docs.txt"):
            (self.root / "tools" / name).write_bytes((ROOT / "tools" / name).read_bytes())
        self.bin = Path(self.folder.name, "bin")
        self.bin.mkdir()

    def tearDown(self) -> None:
        self.folder.cleanup()

    def stand_in(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text("#!/bin/sh\n" + body + "\n", encoding="utf-8")
        path.chmod(0o755)

    def setup_script(self, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
        return run(["/bin/bash", self.root / "tools/setup.sh", *arguments],
                   env={"PATH": path or f"{self.bin}:/usr/bin:/bin", "HOME": self.folder.name},
                   stdin=subprocess.DEVNULL)

    def test_an_unknown_argument_is_refused(self) -> None:
        result = self.setup_script("--everything")
        self.assertEqual(result.returncode, 6)
        self.assertIn("unknown argument '--everything'", result.stderr)

    def test_a_failing_apt_shows_its_words_and_a_remedy(self) -> None:
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", "echo 'Temporary failure resolving'; exit 100")
        result = self.setup_script()
        self.assertEqual(result.returncode, 6)
        self.assertIn("Temporary failure resolving", result.stderr)
        self.assertIn("Is the network up?", result.stderr)

    def test_without_root_and_sudo_the_command_is_named(self) -> None:
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        for tool in ("bash", "dirname", "mktemp", "tail", "rm", "env", "cat"):
            os.symlink(f"/usr/bin/{tool}" if Path(f"/usr/bin/{tool}").exists() else f"/bin/{tool}",
                       self.bin / tool)
        result = self.setup_script(path=str(self.bin))
        self.assertEqual(result.returncode, 6)
        self.assertIn("apt-get install --no-install-recommends", result.stderr)

    def test_a_failing_pip_shows_its_words_and_a_remedy(self) -> None:
        self.stand_in("dpkg-query", "echo installed")
        fake = self.root / ".venv/bin"
        fake.mkdir(parents=True)
        python = fake / "python"
        python.write_text("#!/bin/sh\ncase \"$*\" in *'pip install'*) echo 'No route to host'; exit 1;;\n"
                          "*import*) exit 0;;\n*) echo torch==2.13.0;; esac\n", encoding="utf-8")
        python.chmod(0o755)
        result = self.setup_script()
        self.assertEqual(result.returncode, 6)
        self.assertIn("No route to host", result.stderr)
        self.assertIn("PIP_INDEX_URL", result.stderr)

    def test_only_dev_installs_what_the_checks_need(self) -> None:
        self.stand_in("dpkg-query", "echo installed")
        fake = self.root / ".venv/bin"
        fake.mkdir(parents=True)
        python = fake / "python"
        python.write_text("#!/bin/sh\ncase \"$*\" in *'pip install'*) exit 1;;\n"
                          "*--with-deps*requirements-dev.txt*) echo checker==1;; esac\n", encoding="utf-8")
        python.chmod(0o755)
        self.assertEqual(self.setup_script().returncode, 0)
        self.assertIn("pip could not install checker==1", self.setup_script("--dev").stderr)

    def test_each_half_leaves_the_other_alone(self) -> None:
        self.stand_in("dpkg-query", "echo installed")
        result = self.setup_script("--system")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse((self.root / ".venv").exists())
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("apt-get", "exit 100")
        fake = self.root / ".venv/bin"
        fake.mkdir(parents=True)
        python = fake / "python"
        python.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        python.chmod(0o755)
        result = self.setup_script("--python")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("apt", result.stdout)

    def test_docs_need_neither_a_compiler_nor_torch(self) -> None:
        self.stand_in("dpkg-query", "case \"$*\" in *g++*|*clang*) exit 1;; esac; echo installed")
        fake = self.root / ".venv/bin"
        fake.mkdir(parents=True)
        python = fake / "python"
        python.write_text("#!/bin/sh\ncase \"$*\" in *'pip install'*) echo \"$@\" >> asked;;\n"
                          "*--with-deps*requirements-docs.txt*) echo builder==1;;\n"
                          "*requirements.txt*) echo torch==1;; esac\n", encoding="utf-8")
        python.chmod(0o755)
        result = self.setup_script("--docs")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("builder==1", (self.root / "asked").read_text(encoding="utf-8"))
        self.assertNotIn("torch", (self.root / "asked").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
