# SPDX-License-Identifier: Apache-2.0
"""tools/check_docs.py: links, anchors, pages that the menu lacks, raw files that no page names."""
from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402

INDEX = "# Start\n\n## Read\n[a](a.md) [readme](../README.md)\n"


class Tree(unittest.TestCase):
    def faults(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"docs/index.md": INDEX, "docs/a.md": "# A\n", "README.md": "# R\n", **files}.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, "-B", ROOT / "tools/check_docs.py", folder],
                                  capture_output=True, text=True, check=False)
            lines = done.stdout.splitlines()
            self.assertEqual(done.returncode, 1 if len(lines) > 1 else 0, done.stdout + done.stderr)
            return lines[:-1]

    def test_good_links_pass(self) -> None:
        self.assertEqual(self.faults({
            "docs/a.md": "# A b\n\n## The `x`: twice\n## The `x`: twice\n[1](#a-b) [2](index.md#start)\n"
                         "[3](a.md#the-x-twice-1) ![4](b.svg) [web](https://example.com/x#y)\n"
                         "[two\nlines](../README.md)\n",
            "docs/b.svg": "<svg/>\n"}), [])

    def test_code_has_no_links(self) -> None:
        self.assertEqual(self.faults({"docs/a.md": "`[x](none.md)`\n\n```sh\n# [x](none.md)\n```\n"}), [])

    def test_each_broken_link_is_found_with_its_line(self) -> None:
        for link, fault in (("none.md", "names no file"), ("index.md#end", "names no heading of docs/index.md"),
                            ("#end", "names no heading of docs/a.md"), ("../docs", "names a folder"),
                            ("/README.md", "is absolute"), ("../../x.md", "names no file")):
            found = self.faults({"docs/a.md": f"# A\n\n[x]({link})\n"})
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith(f"docs/a.md:3: error: the link '{link}' {fault}"), found)

    def test_a_heading_in_a_code_block_is_no_anchor(self) -> None:
        self.assertEqual(len(self.faults({"docs/a.md": "```\n# End\n```\n[x](#end)\n"})), 1)

    def test_a_page_that_the_menu_lacks(self) -> None:
        fault = "error: the menu lacks this page: link it from a section of docs/index.md"
        self.assertEqual(self.faults({"docs/lost.md": "# Lost\n"}), [f"docs/lost.md:1: {fault}"])
        self.assertEqual(self.faults({"docs/lost.md": "# Lost\n", "docs/a.md": "[lost](lost.md)\n"}),
                         [f"docs/lost.md:1: {fault}"])
        self.assertEqual(len(self.faults({"docs/lost.md": "# Lost\n", "docs/index.md": "[l](lost.md)\n" + INDEX})), 1)
        self.assertEqual(self.faults({"docs/found.md": "# F\n", "docs/index.md": INDEX + "[f](found.md)\n"}), [])

    def test_a_raw_file_that_no_page_names(self) -> None:
        page = {"docs/index.md": INDEX + "[m](measurements/m.md)\n", "docs/measurements/run.jsonl": "{}\n"}
        for text, count in (("Raw: `run.jsonl`.\n", 0), ("Raw: `other_run.jsonl`.\n", 1), ("# M\n", 1)):
            self.assertEqual(len(self.faults({**page, "docs/measurements/m.md": text})), count, text)


class Slugs(unittest.TestCase):
    def test_github_s_rule(self) -> None:
        for heading, anchor in (("Each element", "each-element"), ("Floor, reachable bound", "floor-reachable-bound"),
                                ("`--proposer CMD`", "--proposer-cmd"), ("A [b](c.md) d_e", "a-b-d_e")):
            self.assertEqual(check_docs.slug(heading), anchor)


if __name__ == "__main__":
    unittest.main()
