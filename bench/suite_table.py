#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the output of `cutegen baselines --json` to CSV (--csv FILE) and to lines for docs/measurements/suite.md.

Usage: suite_table.py DOCUMENT.json... [--csv FILE]
"""
from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

Json = dict[str, Any]
KINDS = ("eager", "eager-tf32", "compile", "compile-max")
COLUMNS = ["level", "number", "name", "class", "status", "admitted", "truth_s", "truth_bytes", "floor_ns"]


def rows_of(document: Json) -> Iterator[Json]:
    for task in document["tasks"]:
        record = task["record"] or {}
        row = {"level": task["level"], "number": task["number"], "name": task["name"],
               "class": record.get("class", ""), "status": task["status"],
               "admitted": record.get("admitted", ""), "floor_ns": record.get("floor_ns", "")}
        truth = record.get("truth", {})
        if truth.get("bytes"):
            row["truth_s"], row["truth_bytes"] = round(truth["seconds"], 3), truth["bytes"]
        for b in record.get("baselines", []):
            row[b["kind"] + "_ns"] = b.get("time_ns", "")
            row[b["kind"] + "_build_s"] = round(b["build_s"], 2)
            row[b["kind"] + "_why"] = b.get("why", "")
        yield row


def median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else "-"


def summary(document: Json, rows: list[Json]) -> None:
    print(f"{len(rows)} tasks: {document['counts']}, {document['seconds']:.0f} s; controls "
          + ", ".join(f"{c['name']} {c['time_ns'] / 1e3:.1f} us" for c in document["controls"]))
    truths = [r["truth_s"] for r in rows if "truth_s" in r]
    if truths:
        print(f"truths: {len(truths)}, median {median(truths)} s, sum {sum(truths):.0f} s, worst {max(truths):.1f} s")
    print(f"admitted: {sum(r['admitted'] is True for r in rows)}; not: "
          + ", ".join(r["name"] for r in rows if r["admitted"] is False))
    for kind in KINDS:
        timed = [r for r in rows if r.get(kind + "_ns")]
        failed = [r for r in rows if r.get(kind + "_why")]
        builds = [r[kind + "_build_s"] for r in timed]
        faster = [math.log(r["eager_ns"] / r[kind + "_ns"]) for r in timed if r.get("eager_ns")]
        geomean = math.exp(sum(faster) / len(faster)) if faster else float("nan")
        print(f"{kind}: {len(timed)} timed, {len(failed)} with a reason, opened in {median(builds)} s (median); "
              f"eager / {kind}: geomean {geomean:.2f} over {len(faster)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", nargs="+")
    parser.add_argument("--csv")
    options = parser.parse_args()
    everything = []
    for path in options.documents:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        rows = list(rows_of(document))
        summary(document, rows)
        everything += rows
    if options.csv:
        columns = COLUMNS + [k + part for k in KINDS for part in ("_ns", "_build_s", "_why")]
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(everything)


if __name__ == "__main__":
    main()
