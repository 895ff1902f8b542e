#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutates the recipes' kernels and counts how many mutants the evaluator catches.

    nice tools/mutants.py --work build/mutants                 judge; continues where it stopped
    tools/mutants.py --work build/mutants --report             print the page from the results

With --honest, it mutates the programs of tests/honest, one per task. Otherwise a search finds correct programs for each
task of tests/mutants/tasks: the first one, the best one, and one between them. If the best one uses the tensor cores,
a version with asynchronous copies is added.
tools/mutation.py lists the mutants of a program in random order, alternating between the operators. One evaluator
judges them until --each of them count. A mutant is

    caught       failed or rejected after it compiled
    stillborn    refused by lint or compiler; it does not count
    same code    its plan and its PTX are those of the original, so it is equivalent
    equivalent   listed in tests/mutants/equivalent.json with a proof
    missed       anything else

DIR/results.jsonl has a line for each judged program. A later call does not judge these again; with --again, it judges
the missed ones again. The exit code is 1 if a mutant is missed or an original is not correct.
"""
from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/e2e")]
import harness  # noqa: E402
import mutation  # noqa: E402
from evaluator_client import Closed, Evaluator, load_program  # noqa: E402

Row = dict[str, Any]

TASKS = ROOT / "tests/mutants/tasks"
HONEST = ROOT / "tests/honest"
EQUIVALENT = ROOT / "tests/mutants/equivalent.json"
HASH_BYTES = 64  # an entry of the compile cache starts with the hash of the rest
COUNTED = ("caught", "missed")
MOST = 6  # a program's judged mutants are at most this many times the wanted number


class Work:
    """The folder of one measurement: programs, compile cache, results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.results = self.folder / "results.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {n: os.environ[n] for n in ("PATH", "LANG", "TMPDIR", "CUTEGEN_PYTHON") if n in os.environ}
        self.env = dict(kept, HOME=str(self.folder), XDG_CACHE_HOME=str(self.folder / "cache"),
                        CUTEGEN_PTXAS="", CUTEGEN_NVDISASM="")  # the audit adds nothing here
        if not (harness.BIN.parent / "libexec").exists():  # a bundle finds its own files
            self.env.update(CUTEGEN_SHARE=str(harness.ROOT), CUTEGEN_BIN=str(harness.BIN))

    def rows(self) -> list[Row]:
        if not self.results.exists():
            return []
        text = self.results.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def forget_missed(self) -> None:
        kept = [r for r in settled(self.rows()) if r["kind"] != "missed"]
        self.results.write_text("".join(json.dumps(r) + "\n" for r in kept), encoding="utf-8")

    def add(self, row: Row) -> None:
        with self.results.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")

    def cutegen(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(harness.BIN / "cutegen"), *map(str, arguments)]
        return subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)

    def code(self, verdict: Row) -> list[str] | None:
        """The PTX of all modules without comments and places in the source."""
        out = []
        for build in verdict["build_ids"]:
            found = list((self.folder / "cache").glob(f"**/builds/{build[:2]}/{build}"))
            if not found:
                return None
            ptx = json.loads(found[0].read_bytes()[HASH_BYTES:])["ptx"]
            out.append(re.sub(r"^\s*\.(?:loc|file)\b.*\n|//.*", "", ptx.split(".section")[0], flags=re.M))
        return out


def search(work: Work, task: Path, evaluations: int) -> list[tuple[str, Row, Path]]:
    """[(name, parameters, folder)] of programs of one task; found once."""
    listing = work.folder / "programs" / task.stem / "programs.json"
    if listing.exists():
        return [(n, p, listing.parent / n) for n, p in json.loads(listing.read_text())]
    shutil.rmtree(listing.parent, ignore_errors=True)
    runs = listing.parent / "runs"
    done = work.cutegen("optimize", task, "--evaluations", evaluations, "--runs", runs, "--out",
                        listing.parent / "out", "--json", "-q")
    if done.returncode != 0:
        raise SystemExit(f"{task.stem}: no program\n{done.stderr[-1000:]}")
    pages = []
    for number in range(1, evaluations + 1):
        shown = work.cutegen("show", "last", f"c{number}", "--json", "--runs", runs)
        pages += [json.loads(shown.stdout)] if shown.returncode == 0 else []
    for page in pages:
        if page["status"] == "failed":
            work.add({"task": task.stem, "program": page["id"], "operator": None, "kind": "failed",
                      "params": page["params"], "digest": page["program_id"],
                      "headline": page["verdict"]["feedback"]["headline"]})
    right = [p for p in pages if p["status"] == "correct"]
    best = min(right, key=lambda p: p["time_ns"])
    between = [p for p in right[1:] if p is not best][-1:]
    chosen = {p["id"]: p for p in [right[0], *between, best]}
    for name, page in chosen.items():
        mutation.save({"plan.json": json.dumps(page["program"]["plan"], indent=1),
                       **page["program"]["sources"]}, listing.parent / name)
    programs = [(n, p["params"]) for n, p in chosen.items()]
    if best["params"].get("tensor_cores"):
        programs.append(with_async_copies(listing.parent / best["id"], best["params"]))
    listing.write_text(json.dumps(programs))
    return [(n, p, listing.parent / n) for n, p in programs]


def with_async_copies(folder: Path, params: Row) -> tuple[str, Row]:
    """A program for the tensor cores with three stages, whose tiles come by cp.async: (name, parameters)."""
    program = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    program["kernel.cu"] = program["kernel.cu"].replace(f"kStages = {params['stages']};", "kStages = 3;")
    plan = json.loads(program["plan.json"])
    for step in plan["steps"]:
        if "shared_bytes" in step:
            step["shared_bytes"] = step["shared_bytes"] // params["stages"] * 3
    mutation.save({**program, "plan.json": json.dumps(plan, indent=1)}, folder.parent / "async")
    return "async", {**params, "stages": 3}


def digest_of(task: Path, program: mutation.Program) -> str:
    text = task.read_text(encoding="utf-8") + json.dumps(program, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Judge:
    """One evaluator for all programs; replaced by a fresh one if it dies."""

    def __init__(self, work: Work, device: str) -> None:
        self.work, self.device = work, device
        self.evaluator: Any = None
        self.open: Path | None = None

    def verdict(self, task: Path, program: mutation.Program) -> Any:
        folder = self.work.folder / "program"
        shutil.rmtree(folder, ignore_errors=True)
        mutation.save(program, folder)
        for attempt in range(3):
            try:
                if not self.evaluator:
                    python = os.environ.get("CUTEGEN_PYTHON", "")
                    self.evaluator = Evaluator(self.work.env, device=self.device, python=python)
                    self.open = None
                if self.open != task:
                    self.evaluator.open_task(task)
                    self.open = task
                return self.evaluator.evaluate(load_program(folder))
            except (Closed, OSError):
                self.evaluator = None
                if attempt == 2:
                    raise
        return None


def kind_of(verdict: Row, same: bool) -> str:
    ended = [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"]
    if ended and ended[0] in ("lint", "compile"):
        return "stillborn"
    if verdict["status"] in ("failed", "rejected"):
        return "caught"
    return "same code" if same else "missed"


def cause_of(verdict: Row) -> str:
    """What caught the mutant: wrong values, the kind of a finding, or the rung."""
    ended = [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"] or ["?"]
    if verdict["feedback"]["mismatches"]:
        return "wrong values"
    finding = re.match(r"\w+: (\w+): ", verdict["feedback"]["headline"])
    return finding[1] if finding else f"rung {ended[0]}"


def judge_program(judge: Judge, task: Path, name: str, params: Row, folder: Path, options: argparse.Namespace) -> None:
    """The original and its mutants."""
    work, program = judge.work, mutation.load(folder, ROOT / "include")
    mutants = mutation.drawn_mutants(program, f"{options.seed}/{base_of(task)}/{name}")
    if options.operators:
        mutants = [m for m in mutants if m.operator in options.operators]
    known = {r["digest"]: r for r in settled(work.rows())}
    base = {"task": base_of(task), "program": name, "params": params}
    first: Any = None
    counted = 0
    for mutant in [None, *mutants[:MOST * options.each]]:
        text = mutant.apply(program) if mutant else program
        digest = digest_of(task, text)
        if digest in known:
            counted += known[digest]["kind"] in COUNTED
            continue
        if counted >= options.each:
            break
        if mutant and not first:  # the original's code is wanted
            first = judge.verdict(task, program)
        began = time.monotonic()
        verdict = judge.verdict(task, text)
        row = {**base, "digest": digest, "operator": mutant.operator if mutant else None,
               "status": verdict["status"], "headline": verdict["feedback"]["headline"],
               "seconds": round(time.monotonic() - began, 2)}
        if mutant:
            code = work.code(verdict)
            same = mutant.file != "plan.json" and code is not None and code == work.code(first)
            row.update(kind=kind_of(verdict, same), cause=cause_of(verdict), **mutant.told(program))
        else:
            first = verdict
            row["kind"] = "original" if verdict["status"] == "correct" else "failed"
        work.add(row)
        counted += row["kind"] in COUNTED
        if row["kind"] == "failed":
            raise SystemExit(f"{task.stem} {name}: the original fails: {row['headline']}")
        print(f"{base_of(task)} {name} {row['operator'] or 'original'}: {row['kind']} "
              f"({row['headline'][:100]})", flush=True)


def proof_of(row: Row, known: list[Row]) -> str | None:
    """The proof that a mutant is equivalent. An entry names the change and, if needed, the programs."""
    for entry in known:
        if all(row[k] == entry[k] for k in ("operator", "line", "old", "new")):
            if f"{row['task']} {row['program']}" in entry.get("programs", [f"{row['task']} {row['program']}"]):
                return entry["proof"]
    return None


def settled(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows; those with a proof are marked as equivalent."""
    known = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else []
    for row in rows:
        proof = proof_of(row, known) if row["kind"] == "missed" else None
        yield {**row, "kind": "equivalent", "proof": proof} if proof else row


def family(row: Row) -> str:
    if row["program"] == "honest":
        return "tests/honest"
    if row["task"].startswith("matmul"):
        engine = "tensor cores" if row["params"].get("tensor_cores") else "SIMT"
        return f"matmul, {engine}" + (", split" if row["params"].get("split", 1) > 1 else "")
    if "columns" in row["params"]:
        return "reduction, columns"
    if "width" in row["params"]:
        return "reduction, rows"
    return "elementwise"


def table(mutants: list[Row]) -> list[str]:
    families = sorted({family(r) for r in mutants})
    out = ["| operator | " + " | ".join(families) + " | all |", "|---" * (len(families) + 2) + "|"]

    def cell(rows: list[Row]) -> str:
        count = collections.Counter(r["kind"] for r in rows)
        made = sum(count[k] for k in COUNTED)
        return f"{count['caught']}/{made}" if made else ""

    for operator in [*mutation.OPERATORS, None]:
        of = [r for r in mutants if operator in (None, r["operator"])]
        cells = [cell([r for r in of if family(r) == f]) for f in families] + [cell(of)]
        if cells[-1]:
            out.append(f"| {operator or 'all'} | " + " | ".join(cells) + " |")
    return out


def shown(row: Row) -> str:
    change = f"`{row['line']}`: `{row['old']}` -> `{row['new'] or 'nothing'}`"
    return f"{row['task']} {row['program']}, {row['operator']}: {change}"


def report(rows: list[Row]) -> str:
    mutants = [r for r in rows if r["operator"]]
    originals = [r for r in rows if not r["operator"]]
    count = collections.Counter(r["kind"] for r in mutants)
    made = sum(count[k] for k in COUNTED)
    wrong = [r for r in originals if r["kind"] == "failed"]
    causes = collections.Counter(r["cause"] for r in mutants if r["kind"] == "caught")
    out = [f"**{count['caught']} of {made} mutants caught ({100 * count['caught'] / max(made, 1):.1f}%)**, of "
           f"{len(originals) - len(wrong)} programs of {len({r['task'] for r in originals})} tasks. Not counted: "
           f"{count['stillborn']} that lint or compiler refuse, {count['same code']} with the PTX of the original, "
           f"{count['equivalent']} equivalent by the proofs below. Originals with a finding: {len(wrong)}.", ""]
    out += table(mutants)
    out += ["", "Caught by: " + ", ".join(f"{w} {n}" for w, n in causes.most_common()) + ".", ""]
    out += [f"- NOT correct: {r['task']} {r['program']}: {r['headline']}" for r in wrong]
    out += [f"- missed: {shown(r)}: {r['status']}: {r['headline']}" for r in mutants if r["kind"] == "missed"]
    listed = collections.defaultdict(list)
    for r in mutants:
        if r["kind"] == "equivalent":
            listed[r["operator"], r["line"], r["old"], r["new"], r["proof"]].append(f"{r['task']} {r['program']}")
    if listed:
        out += ["## Equivalent, with the proof", ""]
        out += [f"- {o}: `{line}`: `{old}` -> `{new or 'nothing'}` ({', '.join(sorted(names))}). {proof}"
                for (o, line, old, new, proof), names in sorted(listed.items())]
    return "\n".join(out) + "\n"


def base_of(task: Path) -> str:
    """The name of a task; each honest program's file is task.py, so the folder names it."""
    return task.parent.name if task.stem == "task" else task.stem


def judge_honest(judge: Judge, options: argparse.Namespace) -> None:
    """Judges the part of the programs of tests/honest that the options select."""
    part, parts = map(int, options.part.split("/"))
    for folder in sorted(HONEST.iterdir())[part - 1::parts]:
        if not options.only or folder.name in options.only:
            judge_program(judge, folder / "task.py", "honest", {}, folder, options)


def judge_all(work: Work, options: argparse.Namespace) -> None:
    judge = Judge(work, options.device)
    if options.honest:
        judge_honest(judge, options)
        if judge.evaluator:
            judge.evaluator.close()
        return
    tasks = sorted(TASKS.glob("*.py"), key=lambda p: (p.stem.startswith("matmul"), p.stem))
    for task in tasks:
        if options.only and task.stem not in options.only:
            continue
        for name, params, folder in search(work, task, options.evaluations):
            judge_program(judge, task, name, params, folder, options)
    if judge.evaluator:
        judge.evaluator.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--report", action="store_true", help="judge nothing, print the page's text")
    parser.add_argument("--honest", action="store_true", help="mutate the programs of tests/honest")
    parser.add_argument("--device", default="sim:h200")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="with --honest: every N-th program")
    parser.add_argument("--again", action="store_true", help="judge missed mutants again")
    parser.add_argument("--only", nargs="*", help="tasks by name; all if none is given")
    parser.add_argument("--operators", nargs="*", choices=list(mutation.OPERATORS),
                        help="judge mutants of these only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4, help="mutants per program")
    parser.add_argument("--evaluations", type=int, default=7, help="of the search for programs")
    options = parser.parse_args()
    work = Work(options.work)
    if options.again:
        work.forget_missed()
    if not options.report:
        judge_all(work, options)
    rows = list(settled(work.rows()))
    print(report(rows), end="")
    return int(any(r["kind"] in ("missed", "failed") for r in rows))


if __name__ == "__main__":
    sys.exit(main())
