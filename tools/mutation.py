# SPDX-License-Identifier: Apache-2.0
"""Mutation operators on kernel programs: the small errors that people make in kernels.

An operator takes a program (a dict of file name to text) and lists its mutants. A mutant is a file, a range in it, and
the text that replaces the range. The source first gets the text of the device components of cutegen/, so that they
are mutated, too. Operators do not change comments and preprocessor lines.
"""
from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Program = dict[str, str]  # file name -> text
Sites = Callable[[str, str, str], Iterator[tuple[int, int, str]]]
Replacement = str | Callable[[re.Match[str]], str | None]

# math.cuh is not mutated, because its own tests check which rounding its arithmetic permits.
COMPONENTS = r"^#include <(cutegen/(?!math|prelude)[^>]+)>$"


@dataclass(frozen=True)
class Mutant:
    operator: str
    file: str
    begin: int
    end: int
    text: str
    line: str  # the line as it was, for people

    def apply(self, program: Program) -> Program:
        out = dict(program)
        old = out[self.file]
        out[self.file] = old[:self.begin] + self.text + old[self.end:]
        return out

    def told(self, program: Program) -> dict[str, str]:
        """What was changed, for people and for the list of equivalent ones."""
        old = program[self.file][self.begin:self.end]
        return {"file": self.file, "line": shown(self.line), "old": shown(old), "new": shown(self.text)}


def shown(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")[:110]


def inline_components(source: str, include: Path, done: set[str] | None = None) -> str:
    """The source with each #include <cutegen/...> replaced by the header's text, once."""
    done = set() if done is None else done

    def header(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in done:
            return ""
        done.add(name)
        text = (include / name).read_text(encoding="utf-8")
        return inline_components(text.replace("#pragma once", ""), include, done)

    return re.sub(COMPONENTS, header, source, flags=re.MULTILINE)


BLOCK = re.compile(r"^(?:template <[^;{}]*>\n)?(?:(?:struct|class) (?:alignas\([^\n]*\) )?(?P<type>\w+)"
                   r"|(?:CUTEGEN_FN|CUTE_DEVICE) [\w<>,:&* ]+?"
                   r"(?P<function>operator[^\w\s]+|\w+)\()[^;{}]*\{.*?^\}"
                   r"|^using (?P<alias>\w+) = [^;{}]*;", re.MULTILINE | re.DOTALL)


def used_components(source: str, include: Path) -> str:
    """The source preceded by the device components that it uses. Mutants of unused components would mean nothing."""
    text = inline_components(source, include)
    start = text.rfind("using namespace cute;")
    if start < 0:
        return text  # plain CUDA: all of it is the program's own
    blocks = [(m["type"] or m["function"] or m["alias"], m) for m in BLOCK.finditer(text[:start])]
    seen, todo = set(), {text[start:]}
    while todo:
        words = set(re.findall(r"\w+", todo.pop()))
        for name, m in blocks:
            if name in words and m.start() not in seen:
                seen.add(m.start())
                todo.add(m.group())
    for _, m in reversed(blocks):
        if m.start() not in seen:
            text = text[:m.start()] + text[m.end():].lstrip(";")
    return text


def load(folder: str | Path, include: Path) -> Program:
    program = {p.name: p.read_text(encoding="utf-8") for p in Path(folder).iterdir() if p.is_file()}
    program = {n: t for n, t in program.items() if n == "plan.json" or n.endswith(".cu")}
    return {n: used_components(t, include) if n.endswith(".cu") else t for n, t in program.items()}


def save(program: Program, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in program.items():
        (folder / name).write_text(text, encoding="utf-8")


def code_of(text: str) -> str:
    """The text with comments and preprocessor lines replaced by blanks, so that places stay the same."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#[^\n]*", blank, text, flags=re.MULTILINE)


OPERATORS: dict[str, Sites] = {}


def operator(name: str) -> Callable[[Sites], Sites]:
    def keep(function: Sites) -> Sites:
        OPERATORS[name] = function
        return function

    return keep


def rewrites(pattern: str, *replacements: Replacement) -> Sites:
    """An operator on sources: each match of the pattern becomes each replacement in turn."""

    def sites(name: str, text: str, code: str) -> Iterator[tuple[int, int, str]]:
        for match in re.finditer(pattern, code):
            for replacement in replacements:
                new = replacement(match) if callable(replacement) else match.expand(replacement)
                if new is not None and new != match.group():
                    yield match.start(), match.end(), new

    return sites


def operand(name: str) -> str:
    return rf"(?P<{name}>[\w.]+(?:\([^()]*\)|\[[^\[\]]*\])?)"


def is_declared(match: re.Match[str]) -> bool:
    """Whether a subscript is the size in an array's declaration."""
    start = match.string.rfind("\n", 0, match.start()) + 1
    before = match.string[start:match.start()].split(";")[-1]
    return bool(re.match(r"\s*(?:__shared__ |alignas\(\d+\) |const )*"
                         r"(?:float|int|unsigned|T|Element|Acc|[A-Z]\w*) (?:const )?[\w, \[\]]*\w\[$", before))


def is_compile_time(word: str) -> bool:
    return bool(re.match(r"k[A-Z]|\d+$|sizeof|Width|Rows|Columns|Tile|Threads|32\b|threadIdx", word))


OPERATORS["drop a barrier"] = rewrites(r"__sync(?:threads|warp)\(\s*\);", ";")
OPERATORS["drop a wait"] = rewrites(
    r"(?:cute::)?cp_async_(?:wait<[^>]*>|fence)\(\s*\);|(?<=cp_async_wait<)[^>]*\b0\b(?=>)", ";")
OPERATORS["shift an index"] = rewrites(
    r"(?<=\w\[)(?P<i>[^\[\]\n]+)(?=\])|(?<=\()(?:i|j|k|v|w|row|column)(?=\)(?! const))"
    r"|(?<=_, )(?:i|j|k|v|tile|stage)(?=\))",
    lambda m: None if is_declared(m) else f"{m.group()} + 1")
OPERATORS["tail off by one"] = rewrites(r"(?<=[\w)]) < (?=[\w(])(?!.*\btemplate\b)", " <= ")
OPERATORS["no bounds check"] = rewrites(
    r"\bif \((?P<c>[^()\n]*(?:\([^()\n]*\)[^()\n]*)*(?:<|live|inside)[^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)",
    "if (true)")
OPERATORS["swap operands"] = rewrites(
    operand("a") + r" (?P<op>[-/]) " + operand("b"),
    lambda m: None if m["a"] == m["b"] or is_compile_time(m["a"]) or is_compile_time(m["b"])
    else f"{m['b']} {m['op']} {m['a']}")
OPERATORS["drop an initial value"] = rewrites(
    r"(?<=\w)(?<!for \(int \w)(?: = -?(?:0\.0f|1\.0f|0|infinity\(\)|INFINITY))(?=[;,])"
    r"|(?:cute::)?clear\((?:results|acc\w*)\);|cute::clear\(to\([^;]*\);",
    "")
OPERATORS["wrong identity"] = rewrites(
    r"(?P<s>-?)infinity\(\)|(?<== )(?P<z>0\.0f)(?=[;,])|(?<== )(?P<o>1\.0f)(?=[;,])",
    lambda m: "0.0f" if m.group().endswith(")") else "1.0f" if m["z"] else "0.0f")
OPERATORS["wrong reduction operator"] = rewrites(
    r"\bmaximum\(|\bminimum\(|\bfmaxf\(|\bfminf\(| \+= (?!k|v|step|gridDim)| \*= (?=\w+\.|x;|factor)"
    r"|(?<=\.)merge\(|(?<=\w )\+ (?=\w+\.error)",
    lambda m: {"maximum(": "minimum(", "minimum(": "maximum(", "fmaxf(": "fminf(", "fminf(": "fmaxf(",
               " += ": " -= ", " *= ": " += ", "+ ": "- "}.get(m.group()))
OPERATORS["wrong stride or layout"] = rewrites(
    r"make_stride\((?P<a>[^(),]+(?:\{\})?), (?P<b>[^(),]+)\)|(?<=make_layout\()(?P<s>\w+), (?P<t>\w+)(?=\)\()|"
    r"Stride<(?P<u>[^<>,]+(?:<[^<>]*>)?), (?P<v>[^<>,]+(?:<[^<>]*>)?)>",
    lambda m: f"make_stride({m['b']}, {m['a']})" if m["a"] else
    f"{m['s']}, {m['t']} + 1" if m["s"] else f"Stride<{m['v']}, {m['u']}>")
OPERATORS["wrong swizzle"] = rewrites(
    r"Swizzle<(?P<a>[^<>,]+), (?P<b>\w+), (?P<c>\w+)>", r"Swizzle<\g<a>, \g<b>, \g<c> - 1>",
    r"Swizzle<0, \g<b>, \g<c>>")
OPERATORS["wrong vector width"] = rewrites(
    r"(?<=kVector = )(?P<v>\w+)(?=;)", r"\g<v> * 2")
OPERATORS["missing warp"] = rewrites(
    r"Width / 32(?=;)|(?<=mask = )Width / 2|(?<=half = )Rows / 2|(?<=mask )/= 2|(?<=half )/= 2|(?<=mask )> 0|"
    r"(?<=half )> 0|\? Width : 32|kThreads / kWidth(?=;)|lane == 0|0xffffffffu",
    lambda m: {"Width / 32": "Width / 32 - 1", "Width / 2": "Width / 4", "Rows / 2": "Rows / 4",
               "/= 2": "/= 4", "> 0": "> 1", "? Width : 32": "? Width : 16",
               "kThreads / kWidth": "kThreads / kWidth + 1", "lane == 0": "lane == 1",
               "0xffffffffu": "0x0000ffffu"}.get(m.group()))
OPERATORS["drop the last tile"] = rewrites(
    r"(?<=[a-z] < )(?P<n>steps|last|vectors|tiles|size<\d>\(results\)|cute::size<\d>\(to\)|kItems|V|TileK)(?=;|\))",
    r"\g<n> - 1")
OPERATORS["wrong step"] = rewrites(
    r"(?<=\+= )(?P<s>kWidth|kRows|step|kThreads)\b|\* kThreads(?= \*)|(?<=i \* )kThreads|(?<=\* )kRows(?= \+)",
    lambda m: f"{m.group()} + 1" if m["s"] else None, lambda m: None if m["s"] else m.group() + " / 2")


FLOAT = r"(?<![\w.])\d+\.\d*(?:e-?\d+)?f\b"


def scaled(match: re.Match[str]) -> str | None:
    """A float constant times 1.005. Omits zero, because it would not change."""
    value = float(match.group()[:-1])
    return f"{value * 1.005!r}f" if value else None


OPERATORS["scale a constant"] = rewrites(FLOAT, scaled)
OPERATORS["scale a result"] = rewrites(
    r"(?<=\bout\[)(?P<i>[^\[\]]*)\] = (?P<v>[^;=]*)(?=;)", r"\g<i>] = decltype(+out[0])(1.005f * float(\g<v>))")
OPERATORS["lower one operand"] = rewrites(
    r"(?<=fmaf\()(?P<a>\w[^,()]*(?:\([^()]*(?:\[[^\]]*\])?[^()]*\))?)(?=, )|(?P<b>\b[a-z]\w*\[[^\[\]]+\])(?= \* )",
    lambda m: f"__uint_as_float(__float_as_uint(float({m['a'] or m['b']})) & 0xffff0000u)")
OPERATORS["drop a carry"] = rewrites(
    r"\b(?:before|carry|start|total|lost|most|mean|left|sum|squares|own)\b [-+*]?= (?!0|-INF|1\.0f;)[^;{}]*;", ";")
OPERATORS["wrong tie"] = rewrites(
    r"\bp < at\b|\bv > best\b|(?<=v )== best|\bi < at\b|(?<=x )> best",
    lambda m: {"p < at": "p > at", "v > best": "v >= best", "== best": "!= best", "i < at": "i > at",
               "> best": ">= best"}[m.group()])
OPERATORS["boundary off by one"] = rewrites(
    r"(?<=[\w)]) (?P<o><|<=|>|>=) (?P<n>n|k|m|rows|columns|length|width|h|wide|count|depth|end)\b(?! [-+])",
    r" \g<o> \g<n> - 1", r" \g<o> \g<n> + 1")


@operator("wrong grid")
def wrong_grid(name: str, text: str, code: str) -> Iterator[tuple[int, int, str]]:
    for match in re.finditer(r"ceil_div\(([^(),]+),([^(),]+)\)", text):
        divisor = match.group(2).strip()
        if divisor != "1":
            yield match.start(), match.end(), f"({match.group(1)})/({divisor})"
        yield match.start(), match.end(), f"max(1,{match.group()}-1)"


@operator("wrong argument")
def wrong_argument(name: str, text: str, code: str) -> Iterator[tuple[int, int, str]]:
    """Sizes and strides that go to the kernel: swaps two neighbours, or adds one."""
    for match in re.finditer(r'"(?:i32|i64|u32)": "([^"]+)"', text):
        yield match.start(1), match.end(1), f"{match.group(1)}+1"


@operator("wrong define")
def wrong_define(name: str, text: str, code: str) -> Iterator[tuple[int, int, str]]:
    for match in re.finditer(r'"[^"]+": "(\w+ % (\d+) == 0 \? (\d+) : 1)"', text):
        yield match.start(1), match.end(1), match.group(3)


ON_PLAN = {"wrong grid", "wrong argument", "wrong define"}


def all_mutants(program: Program) -> dict[str, list[Mutant]]:
    """{operator: [mutants]}, in the order of the text."""
    out = {}
    for name, sites in OPERATORS.items():
        found = {}
        for file, text in sorted(program.items()):
            if (file == "plan.json") != (name in ON_PLAN):
                continue
            code = code_of(text) if file != "plan.json" else text
            for begin, end, new in sites(file, text, code):
                line = text[text.rfind("\n", 0, begin) + 1:(text.find("\n", end) + 1 or len(text)) - 1]
                mutant = Mutant(name, file, begin, end, new, line)
                if valid(mutant, program):
                    found[file, begin, end, new] = mutant
        out[name] = [found[place] for place in sorted(found)]
    return out


def drawn_mutants(program: Program, seed: str) -> list[Mutant]:
    """All mutants in a random order: one of each operator, then another of each, ..."""
    rng, left, out = random.Random(seed), all_mutants(program), []
    for mutants in left.values():
        rng.shuffle(mutants)
    while any(left.values()):
        names = [n for n, mutants in left.items() if mutants]
        rng.shuffle(names)
        out += [left[n].pop() for n in names]
    return out


def valid(mutant: Mutant, program: Program) -> bool:
    if mutant.file != "plan.json":
        return True
    try:
        json.loads(mutant.apply(program)["plan.json"])
    except ValueError:
        return False
    return True

