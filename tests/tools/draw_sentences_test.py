# SPDX-License-Identifier: Apache-2.0
"""tools/draw_sentences.py: which sentences it finds, and that a seed draws the same ones again."""
from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import draw_sentences  # noqa: E402

PAGE = """# A heading is no sentence here
symbols: load, store, store_at
First sentence of a page. The second one goes
over two lines. Short one.

| name | what it means |
|---|---|
| `x` | A cell holds one sentence. |

- An item of a list.
- Another item of it.
```
Nothing in a fence is drawn.
```
"""

HEADER = """// SPDX-License-Identifier: Apache-2.0
// Adds two numbers without
// overflow. It never throws.
//
// Example: int three = add(1, 2);
#pragma once
int add(int a, int b);  // the sum of both,
                        // which must fit
// Subtracts two numbers here.
const char* kText = "// no comment in here at all";
"""


class Sentences(unittest.TestCase):
    def test_documents(self) -> None:
        with_tables = sorted(draw_sentences.document_sentences(PAGE, tables=True))
        self.assertEqual(with_tables, [
            (3, "First sentence of a page."), (3, "The second one goes over two lines."),
            (8, "A cell holds one sentence."), (10, "An item of a list."), (11, "Another item of it.")])
        without = list(draw_sentences.document_sentences(PAGE, tables=False))
        self.assertEqual(len(without), 4)

    def test_comments(self) -> None:
        self.assertEqual(list(draw_sentences.comment_sentences(HEADER)),
                         [(2, "Adds two numbers without overflow."), (7, "the sum of both, which must fit"),
                          (9, "Subtracts two numbers here.")])

    def test_public_headers(self) -> None:
        for name, public in (("src/base/text.h", True), ("include/cutegen/vec.cuh", True),
                             ("src/llm/internal/x.h", False), ("src/base/text.cpp", False)):
            self.assertEqual(draw_sentences.is_public_header(Path(name)), public, name)


class Drawing(unittest.TestCase):
    def run_on(self, folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-B", ROOT / "tools/draw_sentences.py", *arguments, folder],
                              capture_output=True, text=True, check=False)

    def test_a_seed_draws_the_same_again(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "README.md").write_text(PAGE, encoding="utf-8")
            first = self.run_on(folder, "7", "3")
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertEqual(len(first.stdout.splitlines()), 3)
            self.assertRegex(first.stdout, r"(?m)^README\.md:\d+: ")
            self.assertEqual(first.stdout, self.run_on(folder, "7", "3").stdout)
            self.assertEqual(len(self.run_on(folder, "7", "99").stdout.splitlines()), 5)

    def test_wrong_use(self) -> None:
        self.assertEqual(self.run_on(".", "x", "3").returncode, 2)


if __name__ == "__main__":
    unittest.main()
