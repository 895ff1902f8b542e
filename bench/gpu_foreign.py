#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the third-party solutions of tests/foreign (load_inline, Triton, all kinds of cheats) in one batch on a GPU.

Usage: gpu_foreign.py CUTEGEN OUT [--device cuda:0] [--python P] [--seconds N]

OUT gets the verdicts. Prints one line per solution: its result, and the result that tests/foreign/expected.json wants
("as_slow_as": a cheat that is not caught must not be faster than the named solution). The exit status is 1 if a result
differs.
"""
from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]
FOREIGN = Path(__file__).resolve().parents[1] / "tests" / "foreign"
NO_FASTER = 0.97  # a time below this share of the honest solution's counts as a gain


def differs(wanted: Json, row: Json, rows: dict[str, Json]) -> str:
    if row["status"] not in wanted["status"].split(" or "):
        return f"wanted {wanted['status']}"
    if row["status"] != "correct":
        found = re.search(wanted.get("words", ""), row.get("detail", ""), re.IGNORECASE)
        return "" if found else f"wanted the words {wanted['words']}"
    plain = rows[wanted["as_slow_as"]].get("time_ns", 0) if "as_slow_as" in wanted else 0
    return f"faster than {wanted['as_slow_as']}" if row.get("time_ns", 0) < NO_FASTER * plain else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cutegen", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--python", default="")
    parser.add_argument("--seconds", type=int, default=150, help="time limit to build one solution")
    options = parser.parse_args()
    command = [options.cutegen, "eval", FOREIGN / "task.py", "--batch", FOREIGN, "--out", options.out, "--device",
               options.device, "--seconds", options.seconds, "--json"]
    command += ["--python", options.python] if options.python else []
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=False)
    document = json.loads(done.stdout)
    if "error" in document:
        sys.exit(document["error"]["message"])
    (options.out / "foreign.json").write_text(json.dumps(document, indent=1))
    rows = {row["name"]: row for row in document["entries"]}
    wrong = 0
    for name, wanted in json.loads((FOREIGN / "expected.json").read_text()).items():
        row = rows.get(name, {"status": "not judged"})
        trouble = differs(wanted, row, rows)
        wrong += bool(trouble)
        detail = row.get("detail", "").split("\n")[0][:160]
        print(f"{name:16} {row['status']:10} {row.get('time_ns', 0) / 1e3:10.1f} us {row.get('seconds', 0):7.1f} s  "
              f"{trouble.upper() if trouble else 'as wanted'}  {detail}")
    print(f"{len(rows)} solutions in {document['seconds']:.0f} s, {wrong} with another result")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
