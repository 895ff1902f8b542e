#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutates correct kernel programs and counts how many mutants `cutegen eval` catches.

    tools/mutants.py --bin build/release/bin --work DIR [--seed 1] [--most 2] [--out FILE] TASK...

For every task `cutegen optimize` writes a correct program (two: the first one and the best of a few
evaluations); tools/mutation.py lists mutants of it, at most --most of each operator. One evaluator
judges the original and all mutants of a program, in a compile cache of their own. A mutant is

    caught        failed or rejected after it compiled
    stillborn     refused by lint or compiler: no mutant in the sense of the count
    same code     its PTX is the original's: equivalent, proven by the compiler
    equivalent    listed in tests/mutants/equivalent.json with the proof
    missed        correct, unsupported, or anything else

Results are kept in DIR; programs judged before are not judged again. Exit code 1 when a mutant is
missed or an original is not correct.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import mutation

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tests/mutants/equivalent.json"
HASH_BYTES = 64  # a cache entry starts with the hash of the rest
COUNTED = ("caught", "missed")


class Judge:
    def __init__(self, bin_dir, work, device):
        self.bin, self.work, self.device = Path(bin_dir).resolve(), work, device
        self.cache = work / "cache"
        self.env = {**os.environ, "CUTEGEN_SHARE": str(ROOT), "CUTEGEN_BIN": str(self.bin),
                    "CUTEGEN_CACHE": str(self.cache), "XDG_DATA_HOME": str(work / "data")}

    def run(self, *arguments, timeout):
        command = [str(self.bin / "cutegen"), *map(str, arguments)]
        return subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout, check=False)

    def program(self, task, folder, evaluations):
        if not (folder / "plan.json").exists():
            done = self.run("optimize", task, "--device", self.device, "--evaluations", evaluations,
                            "--out", folder, "-q", timeout=900)
            if done.returncode != 0:
                print(f"no program for {task}: {done.stderr.strip()[-300:]}", file=sys.stderr)
                return False
        return True

    def verdicts(self, task, folders):
        """The verdict of each folder; the finished ones are kept beside it."""
        todo = [f for f in folders if not (f / "verdict.json").exists()]
        for at in range(0, len(todo), 20):
            part = todo[at:at + 20]
            done = self.run("eval", task, *part, "--device", self.device, "--json", timeout=1800)
            try:
                entries = json.loads(done.stdout)["verdicts"]
            except (ValueError, KeyError):
                raise SystemExit(f"cutegen eval {task}: {done.stderr[-2000:]}") from None
            for folder, entry in zip(part, entries):
                (folder / "verdict.json").write_text(json.dumps(entry["verdict"]), encoding="utf-8")
        return [json.loads((f / "verdict.json").read_text(encoding="utf-8")) for f in folders]

    def code(self, verdict):
        """The PTX of all modules without places in the source, or nothing where it is not kept."""
        out = set()
        for build in verdict["build_ids"]:
            path = self.cache / "compile/builds" / build[:2] / build
            if not path.exists():
                return None
            ptx = json.loads(path.read_bytes()[HASH_BYTES:])["ptx"]
            out.add(re.sub(r"^\s*\.(?:loc|file)\b.*$|//[^\n]*|\.section\s+\.debug.*?^\s*\}", "", ptx,
                           flags=re.MULTILINE | re.DOTALL if ".section" in ptx else re.MULTILINE))
        return out


def recipe_of(program):
    """A name for the table: the kernels that the plan launches."""
    plan = json.loads(program["plan.json"])
    source = "\n".join(t for n, t in program.items() if n != "plan.json")
    kernels = [s["kernel"] for s in plan["steps"] if "kernel" in s]
    kind = re.search(r"combine_(row|column)<|(MmaGemm|SimtGemm)<|make_layout\(make_shape\(Int<kVector>\{\}, vectors", source)
    return kernels[0] + (f" ({kind.group(1) or kind.group(2) or 'flat'})" if kind else "")


def kind_of(verdict, original, code, original_code):
    ended = [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"]
    if ended and ended[0] in ("lint", "compile"):
        return "stillborn"
    if verdict["status"] in ("failed", "rejected"):
        return "caught"
    if code is not None and code == original_code and not plan_differs(verdict, original):
        return "same code"
    return "missed"


def plan_differs(verdict, original):
    return verdict["plan"] != original["plan"]


def by_what(verdict):
    """What caught it: the rung, and for a finding its kind."""
    ended = [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"] or ["?"]
    finding = re.match(r"(?:shape \S+?[,:] )?.*?\b(\w+): (\w+): ", verdict["feedback"]["headline"])
    if ended[0] == "correctness" and verdict["feedback"]["mismatches"]:
        return "wrong values"
    return finding.group(2) if finding else ended[0]


def listed_equivalents():
    rows = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else []
    return {(r["operator"], r["line"], r["old"], r["new"]): r["proof"] for r in rows}


def judge_program(judge, task, folder, options, rows):
    program = mutation.load(folder, ROOT / "include")
    original = folder.parent / (folder.name + ".mutants") / "original"
    mutation.save(program, original)
    rng = mutation.generator(options.seed, Path(task).stem, folder.name)
    mutants = mutation.mutants_of(program, rng, options.most)
    folders = [original]
    for i, mutant in enumerate(mutants):
        folders.append(original.parent / f"{i:03}")
        mutation.save(mutant.apply(program), folders[-1])
    verdicts = judge.verdicts(task, folders)
    for folder_of, verdict in zip(folders, verdicts):
        verdict["plan"] = json.loads((folder_of / "plan.json").read_text(encoding="utf-8"))
    first, recipe = verdicts[0], recipe_of(program)
    original_code, listed = judge.code(first), listed_equivalents()
    rows.append({"recipe": recipe, "operator": None, "kind": first["status"], "task": str(task),
                 "what": first["feedback"]["headline"]})
    for mutant, verdict, where in zip(mutants, verdicts[1:], folders[1:]):
        kind = kind_of(verdict, first, judge.code(verdict), original_code)
        old = program[mutant.file][mutant.begin:mutant.end]
        key = (mutant.operator, mutation.shown(mutant.line), mutation.shown(old), mutation.shown(mutant.text))
        proof = listed.get(key)
        if kind == "missed" and proof:
            kind = "equivalent"
        rows.append({"recipe": recipe, "operator": mutant.operator, "kind": kind, "task": str(task),
                     "what": by_what(verdict) if kind == "caught" else verdict["status"],
                     "text": mutant.describe(program), "proof": proof, "folder": str(where),
                     "key": list(key)})


def table(rows):
    mutants = [r for r in rows if r["operator"]]
    recipes = sorted({r["recipe"] for r in mutants})
    out = ["| operator | " + " | ".join(recipes) + " | all |", "|---" * (len(recipes) + 2) + "|"]

    def cell(chosen):
        count = Counter(r["kind"] for r in chosen)
        made = sum(count[k] for k in COUNTED)
        return f"{count['caught']}/{made}" if made else "-"

    for operator in [*mutation.OPERATORS, None]:
        of = [r for r in mutants if operator in (None, r["operator"])]
        if any(r["kind"] in COUNTED for r in of):
            cells = [cell([r for r in of if r["recipe"] == recipe]) for recipe in recipes] + [cell(of)]
            out.append(f"| {operator or 'all'} | " + " | ".join(cells) + " |")
    return out


def report(rows):
    mutants = [r for r in rows if r["operator"]]
    count = Counter(r["kind"] for r in mutants)
    made = sum(count[k] for k in COUNTED)
    originals = [r for r in rows if not r["operator"]]
    share = 100 * count["caught"] / made if made else 0
    out = [f"{made} mutants of {len(originals)} programs: {count['caught']} caught ({share:.1f}%), "
           f"{count['missed']} missed. Not counted: {count['stillborn']} refused by lint or compiler, "
           f"{count['same code']} with the PTX of the original, {count['equivalent']} equivalent by "
           "the proofs below.", ""]
    out += table(rows)
    caught = Counter(r["what"] for r in mutants if r["kind"] == "caught")
    out += ["", "Caught by: " + ", ".join(f"{w} {n}" for w, n in caught.most_common()) + ".", ""]
    fine = sum(r["kind"] == "correct" for r in originals)
    out.append(f"Originals: {fine} of {len(originals)} correct, with no finding.")
    out += [f"- NOT correct: {r['task']} ({r['recipe']}): {r['what']}" for r in originals
            if r["kind"] != "correct"]
    for kind, title in (("missed", "Missed"), ("equivalent", "Equivalent")):
        chosen = defaultdict(list)
        for r in mutants:
            if r["kind"] == kind:
                chosen[(r["operator"], r["text"], r["proof"] or r["what"])].append(r["recipe"])
        if chosen:
            out += ["", f"## {title}", ""]
            out += [f"- {o}, {', '.join(sorted(set(names)))}: {text}: {why}"
                    for (o, text, why), names in sorted(chosen.items(), key=str)]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--device", default="sim:h200")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=2, help="mutants of each operator and program")
    parser.add_argument("--evaluations", type=int, nargs="+", default=[1],
                        help="budgets of the searches that give the originals")
    parser.add_argument("--out", type=Path, help="file for the table; default: stdout")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    judge, rows = Judge(options.bin, options.work, options.device), []
    for task in options.tasks:
        for budget in options.evaluations:
            folder = options.work / f"{Path(task).stem}_{budget}"
            if judge.program(task, folder, budget):
                judge_program(judge, task, folder, options, rows)
                print(f"{folder.name}: {Counter(r['kind'] for r in rows if r['operator'])}",
                      file=sys.stderr, flush=True)
    (options.work / "rows.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    text = report(rows)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    kinds = {r["kind"] for r in rows if r["operator"]}
    return int("missed" in kinds or any(r["kind"] != "correct" for r in rows if not r["operator"]))


if __name__ == "__main__":
    sys.exit(main())
