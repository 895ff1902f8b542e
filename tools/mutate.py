#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the small faults in a module that its unit tests notice (mutation testing).

A mutant is a fault at one place: a comparison reversed, a sum turned into a difference, a condition negated, a constant
changed, a statement omitted. All mutants of a file are compiled together, each behind a switch that an environment
variable sets (CG_MUTANT=7), so one build serves them all. A mutant is killed if the tests fail, crash or hang with it
(they hang after five times their usual time plus half a minute). If a mutant survives, no test covers its line. Of
mutants that overlap, one is drawn at random. Mutants that do not compile are omitted.

    python3 tools/mutate.py --module eval --sample 40 --seed 1
    python3 tools/mutate.py --module eval --files correctness truth_pool

Needs a build of single files (make build PRESET=dev). It builds into build/dev/mutants and does not change the source
tree.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import shlex
from concurrent.futures import ThreadPoolExecutor

ROOT = Path(__file__).resolve().parents[1]
SUPPORT = """#pragma once
#include <cstdlib>
namespace mutant {
inline bool on(int id) {
  static const int chosen = [] { const char* e = std::getenv("CG_MUTANT"); return e ? std::atoi(e) : 0; }();
  return chosen == id;
}
#define CG_OPERATOR(NAME, OUTER, ORIGINAL, FAULT)                                              \\
  struct NAME { int id; };                                                                     \\
  template <class T> struct NAME##Held { T value; int id; };                                   \\
  template <class T> auto operator OUTER(T&& a, NAME m) {                                      \\
    return NAME##Held<T>{static_cast<T&&>(a), m.id}; }                                         \\
  template <class T, class U> auto operator OUTER(NAME##Held<T> h, U&& b) {                    \\
    return on(h.id) ? (h.value FAULT b) : (h.value ORIGINAL b); }
CG_OPERATOR(Less, <, <, <=)
CG_OPERATOR(Most, <=, <=, <)
CG_OPERATOR(More, >, >, >=)
CG_OPERATOR(Least, >=, >=, >)
CG_OPERATOR(Equal, ==, ==, !=)
CG_OPERATOR(Other, !=, !=, ==)
CG_OPERATOR(Plus, +, +, -)
CG_OPERATOR(Minus, -, -, +)
CG_OPERATOR(Times, *, *, +)
inline bool negated(int id, bool value) { return on(id) ? !value : value; }
template <class T> T changed(int id, T value) { return on(id) ? T(value * 2 + T(1)) : value; }
}  // namespace mutant
"""
OPERATORS = {"<": "Less", "<=": "Most", ">": "More", ">=": "Least", "==": "Equal", "!=": "Other",
             "+": "Plus", "-": "Minus", "*": "Times"}
NUMBER = "\0"  # in the text of a mutant, until it has one
BINARY = re.compile(r"(?<=[\w\])]) (<=|>=|==|!=|<|>|\+|-|\*) (?=[\w(*&!-])")
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()([^;]*)(\)(?: \{| return.*;| continue;| break;|))$")
CONSTANT = re.compile(r"^constexpr (int|size_t|int64_t|uint64_t|double) (k\w+) = (.*);$")
RETURNED = re.compile(r"^(\s+(?:if \(.*\) )?return )(true|false)(?=;)")
STATEMENT = re.compile(
    r"^(\s+)(?!return|auto|const|static|using|if|for|while|case|default|break|continue|else|delete|"
    r"CG_TRY|CG_ASSERT|throw|goto)([\w.:>\[\]-]+(?:\(.*\)| (?:[+|*&-]?=) [^;]*)|\+\+[\w.>-]+);$")


class Mutant:
    """A fault at one place: other text replaces the text between two columns of a line."""

    def __init__(self, source: Path, number: int, line: int, what: str, start: int, end: int, text: str) -> None:
        self.source, self.number, self.line, self.what = source, number, line, what
        self.start, self.end, self.text = start, end, text

    def told(self) -> dict[str, Any]:
        line = self.source.read_text().split("\n")[self.line].strip()
        return {"file": self.source.name, "at": self.line + 1, "what": self.what, "line": line,
                "column": self.start}


def code_part(line: str) -> str:
    """The line without strings and comments, which keep their length."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: '"' + "_" * (len(m[0]) - 2) + '"', line)
    return re.sub(r"//.*", lambda m: " " * len(m[0]), line)


def balanced(text: str) -> bool:
    return text.count("(") == text.count(")") and text.count("{") == text.count("}")


def other_logic(condition: str) -> str | None:
    """The condition with each outermost && turned into || or the other way round. Returns None if the condition has no
    such operator, or both."""
    depth, out, found = 0, "", set()
    for part in re.split(r"(\(|\)|&&|\|\|)", condition):
        depth += (part == "(") - (part == ")")
        if depth == 0 and part in ("&&", "||"):
            found.add(part)
            part = ") || (" if part == "&&" else ") && ("
        out += part
    return f"(({out}))" if len(found) == 1 else None


def mutants_of_line(text: str) -> list[tuple[str, int, int, str]]:
    """[(what, start, end, replacement)] with NUMBER for the mutant's number."""
    found: list[tuple[str, int, int, str]] = []
    code = code_part(text)
    if code.lstrip().startswith(("#", "template", "using", "namespace")):
        return found
    constant = CONSTANT.match(code)
    if constant:
        kind, name, value = constant.groups()
        return [(f"constant {name}", 0, len(text),
                 f"const {kind} {name} = mutant::changed<{kind}>({NUMBER}, {value});")]
    for m in BINARY.finditer(code):
        op = m[1]
        found.append((f"operator {op}", m.start(), m.end(), f" {op}mutant::{OPERATORS[op]}{{{NUMBER}}}{op} "))
    c = CONDITION.match(code)
    if c and balanced(c[2]) and not re.search(r"(?<![=!<>])=(?!=)", c[2]):
        whole = text[c.start(2):c.end(2)]
        found.append(("condition negated", c.start(2), c.end(2), f"mutant::negated({NUMBER}, bool({whole}))"))
        other = other_logic(c[2]) and other_logic(whole)
        if other:
            found.append(("logic", c.start(2), c.end(2),
                          f"mutant::on({NUMBER}) ? bool({other}) : bool({whole})"))
    r = RETURNED.match(code)
    if r:
        found.append(("result negated", r.start(2), r.end(2), f"mutant::negated({NUMBER}, {r[2]})"))
    s = STATEMENT.match(code)
    if s and balanced(s[2]):
        found.append(("statement removed", s.start(2), len(text),
                      f"{{ if (!mutant::on({NUMBER})) {text[s.start(2):]} }}"))
    return found


def mutants_of(source: Path, first: int) -> list[Mutant]:
    """All mutants of one file."""
    out: list[Mutant] = []
    for at, text in enumerate(source.read_text().split("\n")):
        for what, start, end, new in mutants_of_line(text):
            number = first + len(out)
            out.append(Mutant(source, number, at, what, start, end, new.replace(NUMBER, str(number))))
    return out


def one_of_each_place(mutants: list[Mutant], rng: random.Random) -> list[Mutant]:
    """Overlapping mutants cannot be in one text, so this keeps one of them at random."""
    kept: list[Mutant] = []
    taken: dict[int, list[tuple[int, int]]] = {}
    for m in rng.sample(mutants, len(mutants)):
        spans = taken.setdefault(m.line, [])
        if all(m.end <= s or m.start >= e for s, e in spans):
            spans.append((m.start, m.end))
            kept.append(m)
    return sorted(kept, key=lambda m: m.number)


def mutated_text(source: Path, mutants: list[Mutant]) -> tuple[str, list[list[Mutant]]]:
    """Returns the text and, for each of its lines, the mutants there. Each mutant has its own lines, so that a
    compiler error names the mutant."""
    out = ['#include "mutant.h"']
    owners: list[list[Mutant]] = [[]]
    for at, text in enumerate(source.read_text().split("\n")):
        here = sorted((m for m in mutants if m.line == at), key=lambda m: m.start)
        place, own = 0, []
        for m in here:
            out += [text[place:m.start], m.text]
            own += [here, [m]]
            place = m.end
        out.append(text[place:])
        owners += own + [here]
    return "\n".join(out), owners


class Build:
    def __init__(self, folder: Path, module: str) -> None:
        self.folder, self.module = folder, module
        self.out = folder / "mutants"
        self.out.mkdir(exist_ok=True)
        (self.out / "mutant.h").write_text(SUPPORT)
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.commands = {Path(c["file"]): c["command"] for c in commands}

    def compile(self, source: Path, mutants: list[Mutant]) -> tuple[Path, list[Mutant]]:
        """Returns (object file with the mutants that compile, these mutants). Keeps both for the next call."""
        text, target = self.out / source.name, self.out / (source.stem + ".o")
        kept = self.out / (source.stem + ".json")
        wanted = [source.read_text(), SUPPORT, [m.number for m in mutants]]
        if kept.exists() and json.loads(kept.read_text())[0] == wanted:
            numbers = set(json.loads(kept.read_text())[1])
            return target, [m for m in mutants if m.number in numbers]
        command = shlex.split(self.commands[source])
        command = [c for c in command if not c.endswith("ccache")]
        command[command.index("-o") + 1] = str(target)
        command[-1] = str(text)
        command[1:1] = ["-O0", "-g0", "-w", "-I", str(self.out), "-I", str(source.parent)]
        command = [c for c in command if c not in ("-O3", "-O2", "-g1", "-g")]
        left = mutants
        for _ in range(20):
            content, owners = mutated_text(source, left)
            text.write_text(content)
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                kept.write_text(json.dumps([wanted, [m.number for m in left]]))
                return target, left
            place = rf"{re.escape(source.name)}:(\d+):\d+:\s+(?:error|required from)"
            lines = {int(n) - 1 for n in re.findall(place, done.stderr)}
            bad = {m.number for n in lines for m in owners[n] if len(owners[n]) == 1}
            bad = bad or {m.number for n in lines for m in owners[n]}
            if not bad:
                raise SystemExit(f"{source}: does not compile even so\n{done.stderr[:2000]}")
            left = [m for m in left if m.number not in bad]
        raise SystemExit(f"{source}: too many mutants that do not compile")

    def link(self, objects: list[Path]) -> Path:
        test = f"{self.module}_test"
        line = subprocess.run(["ninja", "-t", "commands", test], cwd=self.folder, check=True,
                              capture_output=True, text=True).stdout.strip().split("\n")[-1]
        program = self.out / test
        line = re.sub(r"-o \S+", f"-o {program}", line, count=1)
        library = f"libcg_{self.module}.a"
        line = line.replace(library, " ".join(map(str, objects)) + " " + library, 1)
        subprocess.run(line, cwd=self.folder, shell=True, check=True)
        return program


def run_tests(program: Path, mutant: int, seconds: float, tests: str) -> str:
    """passed, failed, crashed or hung."""
    env = dict(os.environ, CG_MUTANT=str(mutant), CUTEGEN_SHARE=str(ROOT))
    command = [str(program), "--gtest_fail_fast", "--gtest_brief=1", f"--gtest_filter={tests}"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "hung"
    return "passed" if code == 0 else "crashed" if code < 0 else "failed"


def chosen(arguments: argparse.Namespace, build: Build, rng: random.Random) -> list[tuple[Path, list[Mutant]]]:
    """[(object file, its mutants)] of the files asked for."""
    folder = ROOT / "src" / arguments.module
    sources = sorted(p for p in folder.glob("*.cpp") if not p.stem.endswith("_test"))
    if arguments.files:
        sources = [p for p in sources if p.stem in arguments.files]
    every, first = [], 1
    for source in sources:
        every.append(mutants_of(source, first))
        first += len(every[-1])
    apart = [one_of_each_place(mutants, rng) for mutants in every]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        out = list(pool.map(build.compile, sources, apart))
    for source, m, a, (_, left) in zip(sources, every, apart, out):
        print(f"{source.name}: {len(m)} mutants, {len(a)} that do not overlap, {len(left)} compile",
              file=sys.stderr, flush=True)
    return out


def is_equivalent(row: dict[str, Any], known: list[dict[str, Any]]) -> bool:
    return any(all(row[k] == e[k] for k in ("file", "what", "line")) for e in known)


def report(rows: list[dict[str, Any]], known: list[dict[str, Any]]) -> str:
    """The score by file, and the survivors, as Markdown."""
    files: dict[str, collections.Counter[str]] = {}
    survivors = [r for r in rows if r["result"] == "passed" and not is_equivalent(r, known)]
    equivalent = [r for r in rows if r["result"] == "passed" and is_equivalent(r, known)]
    for r in rows:
        tally = files.setdefault(r["file"], collections.Counter())
        tally["equivalent" if r in equivalent else r["result"]] += 1
    out = ["| file | mutants | failed | crashed | hung | survived | equivalent |", "|---" * 7 + "|"]
    total: collections.Counter[str] = sum(files.values(), collections.Counter())
    for name, tally in [*sorted(files.items()), ("all", total)]:
        out.append(f"| {name} | {sum(tally.values())} | " + " | ".join(
            str(tally[k]) for k in ("failed", "crashed", "hung", "passed", "equivalent")) + " |")
    judged = len(rows) - len(equivalent)
    killed = judged - len(survivors)
    out += ["", f"**{killed} of {judged} killed: {100 * killed / max(judged, 1):.1f}%**, "
                f"{len(equivalent)} equivalent ones not counted.", ""]
    out += [f"- survived: {r['file']}:{r['at']}: {r['what']}: `{r['line']}`" for r in survivors]
    reasons = {(e["file"], e["what"], e["line"]): e["reason"] for e in known}
    out += [f"- equivalent: {r['file']}:{r['at']}: {r['what']}: `{r['line']}`: "
            f"{reasons[r['file'], r['what'], r['line']]}" for r in equivalent]
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--module", default="eval")
    parser.add_argument("--files", nargs="*", help="stems of the files (default: all)")
    parser.add_argument("--sample", type=int, help="judge this many mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="compilers, then tests, at once")
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--tests", nargs="+", default=["*"],
                        help="filters of GoogleTest, run one after another until a mutant is killed")
    parser.add_argument("--equivalent", type=Path, help="JSON list of file, what, line, reason")
    parser.add_argument("--out", type=Path, help="file that gets one JSON line per mutant")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    build = Build(ROOT / arguments.build, arguments.module)
    parts = chosen(arguments, build, rng)
    program = build.link([target for target, _ in parts])
    limits = []
    for tests in arguments.tests:
        began = time.monotonic()
        if run_tests(program, 0, 900, tests) != "passed":
            sys.exit(f"the tests {tests} fail without any mutant")
        seconds = time.monotonic() - began
        limits.append((tests, 5 * seconds + 30))
        print(f"the tests {tests} take {seconds:.1f} s", file=sys.stderr, flush=True)
    mutants = [m for _, left in parts for m in left]
    if arguments.sample and arguments.sample < len(mutants):
        mutants = rng.sample(mutants, arguments.sample)

    def judged(mutant: Mutant) -> dict[str, Any]:
        for tests, seconds in limits:
            result = run_tests(program, mutant.number, seconds, tests)
            if result != "passed":
                break
        return {**mutant.told(), "result": result, "tests": tests}

    rows = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(judged, sorted(mutants, key=lambda m: m.number)):
            rows.append(row)
            if arguments.out:
                arguments.out.write_text("".join(json.dumps(r) + "\n" for r in rows))
    known = json.loads(arguments.equivalent.read_text()) if arguments.equivalent else []
    print(report(rows, known))


if __name__ == "__main__":
    main()
