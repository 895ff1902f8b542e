# SPDX-License-Identifier: Apache-2.0
"""tools/check_kinds.py, on small trees made for each case."""
from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class CheckKinds(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def tearDown(self) -> None:
        self.folder.cleanup()

    def found(self, **files: str) -> list[str]:
        """The output of the check for these files; __ in a name stands for /, and all names get .cpp."""
        for name, text in files.items():
            path = self.root / (name.replace("__", "/") + ".cpp")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)
        done = subprocess.run([sys.executable, ROOT / "tools/check_kinds.py", self.root], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0 if done.stdout.startswith("0 ") else 1, done.stdout + done.stderr)
        return done.stdout.splitlines()[:-1]

    def test_a_comparison_with_a_word_is_refused_with_its_place(self) -> None:
        lines = self.found(src__engine__a='bool f(S s) {\n  return s.status == "done";\n}')
        self.assertEqual(len(lines), 1)
        self.assertIn("src/engine/a.cpp:2:", lines[0])
        self.assertEqual(len(self.found(apps__cli__b='if ("full" != label) g();')), 2)

    def test_a_kind_by_its_prefix_is_refused(self) -> None:
        self.assertEqual(len(self.found(src__engine__a='if (b.kind.starts_with("eager")) f();')), 1)
        self.assertEqual(self.found(src__engine__a='if (name.starts_with("lib")) f();'), [])

    def test_values_paths_and_comments_are_no_kinds(self) -> None:
        self.assertEqual(self.found(src__engine__a='if (x == "") f();\nif (x == "A b") f();\n// x == "done"\n'
                                                   'if (path.extension() == ".cu" || path.filename() == "bin") f();'),
                         [])

    def test_parsers_and_tests_may_compare(self) -> None:
        text = 'if (word == "done") f();'
        self.assertEqual(self.found(src__ptx__text__a=text, src__engine__a_test=text, src__eval__testing__b=text,
                                    tests__fuzz__c=text), [])


if __name__ == "__main__":
    unittest.main()
