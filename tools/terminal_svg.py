#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a run of cutegen as an SVG of a terminal: docs/run.svg, the picture in README.md.

Usage: terminal_svg.py [--bin DIR] [--out FILE] [--text FILE]
Runs `cutegen optimize tasks/softmax.py --device sim:h200 --model builtin` in an empty folder with an empty home and
draws its output. --text draws recorded output instead. The picture has its own background, so that it is readable in
light and in dark themes.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("optimize", "tasks/softmax.py", "--device", "sim:h200", "--model", "builtin")
SECONDS = 600
COLUMNS = 122  # longer lines end in an ellipsis
CHARACTER, LINE, SIZE = 7.25, 17, 12
MARGIN, BAR = 16, 30
BACKGROUND, FRAME, TITLE = "#161b22", "#3d444d", "#9198a1"
COLOURS = {"prompt": "#3fb950", "plain": "#d1d7e0", "label": "#79c0ff", "head": "#9198a1", "good": "#3fb950",
           "result": "#ffffff"}
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
LABEL = re.compile(r"^([a-z]+) {2,}\S")


def run(folder: Path) -> str:
    """What the command prints."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home}
        environment.setdefault("CUTEGEN_SHARE", str(ROOT))
        command = [str(folder / "cutegen"), *COMMAND, "--quiet", "--out", str(Path(home, "out"))]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
                              timeout=SECONDS)
    if done.returncode != 0:
        raise SystemExit(f"terminal_svg: error: cutegen ends with {done.returncode}: {done.stderr}")
    return done.stdout.replace(str(Path(home, "out")), "out")


def shown(line: str) -> str:
    """The line as the terminal shows it: no control characters, no more columns than there are."""
    line = "".join(c if c.isprintable() else " " for c in line.expandtabs()).rstrip()
    return line if len(line) <= COLUMNS else line[:COLUMNS - 1] + "…"


def pieces(line: str) -> Iterator[tuple[str, str]]:
    """The (colour, text) pieces of a line."""
    label = LABEL.match(line)
    if line.startswith("$ "):
        yield from (("prompt", "$"), ("result", line[1:]))
    elif line.startswith("step "):
        yield "head", line
    elif label:
        yield "label", line[:label.end(1)]
        yield "result" if label[1] == "best" else "plain", line[label.end(1):]
    elif "  better  " in line:
        before, _, after = line.partition("  better  ")
        yield from (("plain", before), ("good", "  better  "), ("plain", after))
    else:
        yield "plain", line


def row(number: int, line: str) -> str:
    """One line as one <text>."""
    spans = "".join(f'<tspan fill="{COLOURS[colour]}">{escape(text)}</tspan>' for colour, text in pieces(line))
    return f'<text x="{MARGIN}" y="{BAR + MARGIN + number * LINE}" xml:space="preserve">{spans}</text>\n'


def draw(text: str, title: str = "cutegen") -> str:
    lines = [shown(line) for line in text.strip("\n").splitlines()]
    width = round(2 * MARGIN + CHARACTER * max(map(len, lines), default=0))
    height = BAR + 2 * MARGIN + LINE * len(lines)
    out = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" role="img" font-family="{FONT}" font-size="{SIZE}">\n'
           f"<title>{escape(title)}</title>\n"
           f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{BACKGROUND}" '
           f'stroke="{FRAME}"/>\n')
    for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        out += f'<circle cx="{MARGIN + 4 + 18 * at}" cy="16" r="5" fill="{colour}"/>\n'
    out += f'<text x="{width / 2:g}" y="20" text-anchor="middle" fill="{TITLE}">{escape(title)}</text>\n<g>\n'
    return out + "".join(row(number, line) for number, line in enumerate(lines, 1)) + "</g>\n</svg>\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Draw a run of cutegen as an SVG of a terminal.")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/release/bin", help="folder of the built programs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/run.svg", help="the picture (default docs/run.svg)")
    parser.add_argument("--text", type=Path, help="draw this recorded output, do not run anything")
    options = parser.parse_args(arguments)
    text = options.text.read_text(encoding="utf-8") if options.text else run(options.bin)
    command = f"$ cutegen {' '.join(COMMAND)}\n"
    options.out.write_text(draw(command + text, "cutegen optimize"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
