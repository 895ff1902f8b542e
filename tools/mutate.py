#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many small faults in a module do its unit tests notice?

Every mutant is a fault at one place: a comparison turned round, a sum made a difference, a condition
negated, a constant changed, a statement left out. All mutants of a file are compiled at once, each
behind a switch that the environment throws (CG_MUTANT=7), so one build serves them all. A mutant is
killed when the tests fail, crash or hang with it; what survives is a line that no test holds.

    python3 tools/mutate.py --module eval --sample 40 --seed 1
    python3 tools/mutate.py --module eval --files correctness truth_pool

Builds into build/release/mutants; nothing of the source tree is changed.
"""
import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUPPORT = """#pragma once
#include <cstdlib>
namespace mutant {
inline bool on(int id) {
  static const int chosen = [] { const char* e = std::getenv("CG_MUTANT"); return e ? std::atoi(e) : 0; }();
  return chosen == id;
}
template <class T> struct Held { const T& value; int id; };
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
             "+": "Plus", "-": "Minus", "*": "Times"}  # fmt: skip
BINARY = re.compile(r"(?<=[\w\])]) (<=|>=|==|!=|<|>|\+|-|\*) (?=[\w(*&!-])")
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()([^;]*)(\)(?: \{| return.*;| continue;| break;|))$")
CONSTANT = re.compile(r"^constexpr (int|size_t|int64_t|uint64_t|double) (k\w+) = (.*);$")
STATEMENT = re.compile(
    r"^(\s+)(?!return|auto|const|static|using|if|for|while|case|default|break|continue|else|delete|"
    r"CG_TRY|CG_ASSERT|throw|goto)([\w.:>\[\]-]+(?:\(.*\)| (?:[+|*&-]?=) [^;]*)|\+\+[\w.>-]+);$")


class Mutant:
    def __init__(self, number, line, what, start, end, text):
        self.number, self.line, self.what = number, line, what
        self.start, self.end, self.text = start, end, text


def code_part(line):
    """The line without strings and comments, which keep their length."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: '"' + "_" * (len(m[0]) - 2) + '"', line)
    return re.sub(r"//.*", lambda m: " " * len(m[0]), line)


def balanced(text):
    return text.count("(") == text.count(")") and text.count("{") == text.count("}")


def mutants_of_line(line, number, text):
    """[(what, start, end, replacement)] with # for the mutant's number."""
    found = []
    code = code_part(text)
    if code.lstrip().startswith(("#", "template", "using", "namespace")):
        return found
    constant = CONSTANT.match(code)
    if constant:
        kind, name, value = constant.groups()
        return [(f"constant {name}", 0, len(text),
                 f"const {kind} {name} = mutant::changed<{kind}>(#, {value});")]
    for m in BINARY.finditer(code):
        op = m[1]
        found.append((f"operator {op}", m.start(), m.end(), f" {op}mutant::{OPERATORS[op]}{{#}}{op} "))
    m = CONDITION.match(code)
    if m and balanced(m[2]) and not re.search(r"(?<![=!<>])=(?!=)", m[2]):
        found.append(("condition negated", m.start(2), m.end(2),
                      f"mutant::negated(#, bool({text[m.start(2):m.end(2)]}))"))
    m = STATEMENT.match(code)
    if m and balanced(m[2]):
        found.append(("statement removed", m.start(2), len(text),
                      f"{{ if (!mutant::on(#)) {text[m.start(2):]} }}"))
    return found


def mutants_of(source, first):
    """All mutants of one file; those of a line exclude each other in the text."""
    out, number = [], first
    lines, depth = source.read_text().split("\n"), 0
    for at, text in enumerate(lines):
        for what, start, end, new in mutants_of_line(source, at, text):
            out.append(Mutant(number, at, what, start, end, new.replace("#", str(number))))
            number += 1
        depth += code_part(text).count("{") - code_part(text).count("}")
    return out


def mutated_text(source, mutants):
    lines = source.read_text().split("\n")
    for at in {m.line for m in mutants}:
        taken = len(lines[at]) + 1
        for m in sorted((m for m in mutants if m.line == at), key=lambda m: -m.start):
            if m.end <= taken:
                lines[at] = lines[at][: m.start] + m.text + lines[at][m.end :]
                taken = m.start
    return '#include "mutant.h"\n#line 1\n' + "\n".join(lines)


class Build:
    def __init__(self, folder, module):
        self.folder, self.module = folder, module
        self.out = folder / "mutants"
        self.out.mkdir(exist_ok=True)
        (self.out / "mutant.h").write_text(SUPPORT)
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.commands = {Path(c["file"]): c["command"] for c in commands}

    def compile(self, source, mutants):
        """The object file with as many of the mutants as compile, and those."""
        text = self.out / source.name
        target = self.out / (source.stem + ".o")
        command = shlex.split(self.commands[source])
        command = [c for c in command if not c.endswith("ccache")]
        command[command.index("-o") + 1] = str(target)
        command[-1] = str(text)
        command[1:1] = ["-O0", "-w", "-I", str(self.out), "-I", str(source.parent)]
        command = [c for c in command if c not in ("-O3", "-O2")]
        left = one_of_each_place(mutants)
        for _ in range(12):
            text.write_text(mutated_text(source, left))
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
            if done.returncode == 0:
                return target, left
            bad = {int(n) - 1 for n in re.findall(rf"{re.escape(source.name)}:(\d+):", done.stderr)}
            fewer = [m for m in left if m.line not in bad]
            if len(fewer) == len(left):
                raise SystemExit(f"{source}: does not compile even so\n{done.stderr[:2000]}")
            left = fewer
        return target, left

    def link(self, objects):
        test = f"{self.module}_test"
        line = subprocess.run(["ninja", "-t", "commands", test], cwd=self.folder, check=True,
                              capture_output=True, text=True).stdout.strip().split("\n")[-1]
        program = self.out / test
        line = re.sub(r"-o \S+", f"-o {program}", line, count=1)
        library = f"libcg_{self.module}.a"
        line = line.replace(library, " ".join(map(str, objects)) + " " + library, 1)
        subprocess.run(line, cwd=self.folder, shell=True, check=True)
        return program


def one_of_each_place(mutants):
    """Mutants of one line that overlap cannot stand in one text: the first stays."""
    kept, taken = [], {}
    for m in mutants:
        spans = taken.setdefault(m.line, [])
        if all(m.end <= s or m.start >= e for s, e in spans):
            spans.append((m.start, m.end))
            kept.append(m)
    return kept


def run_tests(program, mutant, seconds, extra):
    env = dict(os.environ, CG_MUTANT=str(mutant))
    began = time.monotonic()
    try:
        done = subprocess.run([str(program), "--gtest_fail_fast", "--gtest_brief=1", *extra], env=env,
                              timeout=seconds, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        passed = done.returncode == 0
    except subprocess.TimeoutExpired:
        passed = False
    return passed, time.monotonic() - began


def chosen(arguments, build):
    """[(object file, its mutants)] of the files asked for."""
    folder = ROOT / "src" / arguments.module
    sources = sorted(p for p in folder.glob("*.cpp") if not p.stem.endswith("_test"))
    if arguments.files:
        sources = [p for p in sources if p.stem in arguments.files]
    out, first = [], 1
    for source in sources:
        mutants = mutants_of(source, first)
        first += len(mutants)
        target, left = build.compile(source, mutants)
        print(f"{source.name}: {len(left)} mutants", flush=True)
        out.append((source, target, left))
    return out


def report(results):
    """Lines about the survivors, and the score by file."""
    files = {}
    for source, mutant, passed in results:
        killed, total = files.get(source.name, (0, 0))
        files[source.name] = (killed + (not passed), total + 1)
        if passed:
            line = source.read_text().split("\n")[mutant.line].strip()
            print(f"survived: {source.name}:{mutant.line + 1}: {mutant.what}: {line}")
    for name, (killed, total) in sorted(files.items()):
        print(f"{name:<20} {killed:>4} of {total:<4} killed")
    killed, total = (sum(x) for x in zip(*files.values()))
    print(f"{'all':<20} {killed:>4} of {total:<4} killed: {100 * killed / total:.1f}%")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--module", default="eval")
    parser.add_argument("--files", nargs="*", help="stems of the files; all if none is named")
    parser.add_argument("--sample", type=int, help="judge so many mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--tests", default="*", help="filter of the tests, as for GoogleTest")
    arguments = parser.parse_args()
    build = Build(ROOT / arguments.build, arguments.module)
    parts = chosen(arguments, build)
    program = build.link([target for _, target, _ in parts])
    extra = [f"--gtest_filter={arguments.tests}"]
    passed, seconds = run_tests(program, 0, 600, extra)
    if not passed:
        sys.exit("the tests fail without any mutant")
    print(f"the tests take {seconds:.1f} s", flush=True)
    mutants = [(source, m) for source, _, left in parts for m in left]
    if arguments.sample and arguments.sample < len(mutants):
        mutants = random.Random(arguments.seed).sample(mutants, arguments.sample)
    results = []
    for source, mutant in sorted(mutants, key=lambda x: x[1].number):
        survived, _ = run_tests(program, mutant.number, 5 * seconds + 20, extra)
        results.append((source, mutant, survived))
    report(results)


if __name__ == "__main__":
    main()
