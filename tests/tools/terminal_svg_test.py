# SPDX-License-Identifier: Apache-2.0
"""tools/terminal_svg.py: the picture is well-formed, escapes its text, and has one row for each line."""
from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import terminal_svg  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
OUTPUT = """task       softmax: softmax, fp32
           x f32 [4096, 32768] -> out f32 [4096, 32768]

step        time  vs first  vs floor  result        took     at  change
c2        311 us     2.38x     1.46x  better       0.8 s   0:04  vector 1 -> 4 & "more" <b>
best       c2, 311 us modelled
"""


def row_elements(root: ElementTree.Element) -> list[ElementTree.Element]:
    group = root.find(f"{SVG}g")
    assert group is not None, "the picture has no rows"
    return list(group.iter(f"{SVG}text"))


def rows(svg: str) -> list[str]:
    """The text of each row."""
    return ["".join(text.itertext()) for text in row_elements(ElementTree.fromstring(svg))]


class Draw(unittest.TestCase):
    def test_one_row_for_each_line_with_its_text_unchanged(self) -> None:
        self.assertEqual(rows(terminal_svg.draw(OUTPUT)), OUTPUT.splitlines())

    def test_rows_stand_below_each_other_inside_the_picture(self) -> None:
        root = ElementTree.fromstring(terminal_svg.draw(OUTPUT))
        heights = [float(text.attrib["y"]) for text in row_elements(root)]
        self.assertEqual(heights, sorted(set(heights)))
        self.assertLess(heights[-1], float(root.attrib["height"]))

    def test_hostile_text_is_escaped_and_control_characters_are_gone(self) -> None:
        svg = terminal_svg.draw("</text><script>x</script>&amp;\x1b[31m\x07\tend", title="<&>")
        self.assertNotIn("<script>", svg)
        self.assertIn("</text><script>x</script>&amp; [31m", rows(svg)[0])
        self.assertNotIn("\x1b", svg)

    def test_long_lines_end_in_an_ellipsis(self) -> None:
        row, = rows(terminal_svg.draw("x" * 1000))
        self.assertEqual(row, "x" * (terminal_svg.COLUMNS - 1) + "…")

    def test_nothing_printed_is_a_picture_too(self) -> None:
        self.assertEqual(rows(terminal_svg.draw("")), [])


class Files(unittest.TestCase):
    def test_recorded_output_is_drawn_below_its_command(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text, out = Path(folder, "run.txt"), Path(folder, "run.svg")
            text.write_text(OUTPUT, encoding="utf-8")
            done = subprocess.run([sys.executable, "-B", ROOT / "tools/terminal_svg.py", "--text", text, "--out", out],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = rows(out.read_text(encoding="utf-8"))
        self.assertEqual(found[0], "$ cutegen " + " ".join(terminal_svg.COMMAND))
        self.assertEqual(found[1:], OUTPUT.splitlines())

    def test_the_picture_of_the_readme_is_one_that_this_script_draws(self) -> None:
        svg = (ROOT / "docs/run.svg").read_text(encoding="utf-8")
        found = rows(svg)
        self.assertEqual(found[0], "$ cutegen " + " ".join(terminal_svg.COMMAND))
        self.assertEqual(svg, terminal_svg.draw("\n".join(found), "cutegen optimize"))
        self.assertTrue(any("modelled" in line for line in found))


if __name__ == "__main__":
    unittest.main()
