#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates docs/reference/ from the program's own help, tables and schema.

Usage: reference.py [--check] [--bin DIR] [ROOT]
commands.md comes from `cutegen COMMAND --help`, settings.md from the table in src/base/config.cpp and the flags of the
help, plan.md from schemas/plan.v1.json, and events.md from the table in src/store/events.cpp.
--check writes nothing. It fails if a page differs, or if environment.md, which is written by hand, does not name
exactly the variables that the sources read.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PAGES = Path("docs/reference")
# Not for users: cutegen sets these variables for the processes that it starts.
INTERNAL = {"CUTEGEN_GATE_FORKS", "CUTEGEN_GATE_OPENING"}


class ReferenceFault(Exception):
    """A source lacks information that a page needs."""


# ---- commands ----------------------------------------------------------------------------------


class Program:
    """Asks the built `cutegen` for its help."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "cutegen"
        if not self.path.is_file():
            raise ReferenceFault(f"there is no program {self.path}: run make build, or give --bin DIR")

    def help(self, *command: str) -> str:
        done = subprocess.run([self.path, *command, "--help"], capture_output=True, text=True, check=False,
                              timeout=60)
        if done.returncode != 0:
            raise ReferenceFault(f"cutegen {' '.join(command)} --help ends with {done.returncode}: {done.stderr}")
        return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def commands_of(overview: str) -> dict[str, str]:
    """Each command with its meaning, in the order of the program's own help."""
    section = re.search(r"^Subcommands:\n((?:  .*\n?)+)", overview, re.MULTILINE | re.IGNORECASE)
    if not section:
        raise ReferenceFault("cutegen --help has no list of its commands")
    found: dict[str, str] = {}
    last = ""
    for line in section[1].splitlines():
        match = re.match(r"  (\S+) +(\S.*)$", line)
        if match:
            last = match[1]
            found[last] = match[2]
        elif last:
            found[last] += " " + line.strip()
    return found


def plain(text: str) -> str:
    """Text of a source as Markdown that shows it unchanged."""
    return re.sub(r"([*|<]|__)", r"\\\1", text)


def paragraph(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


def prose(text: str) -> str:
    """A text whose lines are paragraphs or items of a list."""
    return "".join(paragraph(line) for line in text.split("\n"))


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def generated(title: str, origin: str) -> str:
    note = f"`tools/reference.py` writes this page from {origin}. To change this page, change its source."
    return f"# {title}\n\n{paragraph(note)}"


def commands_page(overview: str, helps: dict[str, str]) -> str:
    out = generated("Commands", "the output of `cutegen --help` and `cutegen COMMAND --help`")
    out += f"\n```text\n$ cutegen --help\n{overview}\n```\n"
    for name, text in helps.items():
        out += f"\n## {name}\n\n```text\n$ cutegen {name} --help\n{text}\n```\n"
    return out


# ---- settings ----------------------------------------------------------------------------------

STRINGS = r'((?:"(?:\\.|[^"\\])*"\s*)+)'
ROW = re.compile(r'\{\.key = "(\w+)",\s*\.type = Type::(\w+),\s*\.fallback = "([^"]*)",\s*\.meaning =\s*' + STRINGS +
                 r'(?:,\s*\.choices = "([^"]*)")?\}')
TYPES = {"text": "text", "integer": "whole number", "boolean": "`true` or `false`", "number": "number"}


@dataclasses.dataclass
class Setting:
    key: str
    type: str
    default: str
    meaning: str
    choices: str
    flags: str = ""
    commands: list[str] = dataclasses.field(default_factory=list)
    is_read: bool = True

    @property
    def variable(self) -> str:
        return "CUTEGEN_" + self.key.upper()

    def kind(self) -> str:
        if self.type == "choice":
            return ", ".join(f"`{choice}`" for choice in self.choices.split())
        return TYPES[self.type]


def between(text: str, start: str, end: str, where: str) -> str:
    """The text between two marks of a source file."""
    first = text.find(start)
    last = text.find(end, first + len(start))
    if first < 0 or last < 0:
        raise ReferenceFault(f"{where}: there is no table '{start}'")
    return text[first + len(start):last]


def literal(text: str) -> str:
    """The value of adjacent C string literals."""
    return "".join(json.loads(part) for part in re.findall(r'"(?:\\.|[^"\\])*"', text))


def settings_of(text: str) -> list[Setting]:
    table = between(text, "kDeclared[] = {", "\n};", "src/base/config.cpp")
    found = [Setting(key, kind, default, literal(meaning), choices)
             for key, kind, default, meaning, choices in ROW.findall(table)]
    if len(found) != len(re.findall(r"Type::", table)):
        raise ReferenceFault("src/base/config.cpp: kDeclared has a row that this script cannot read")
    return found


def find_flags(setting: Setting, helps: dict[str, str]) -> None:
    """Fills in which commands take the setting as a flag, and how it is written."""
    long = "--" + setting.key.replace("_", "-")
    option = re.compile(rf"^  (?:\S*,)?{long}(?=[, ]|$)[^ ]*", re.MULTILINE)
    for command, text in helps.items():
        match = option.search(text)
        if match:
            setting.flags = match[0].strip().replace(",", ", ")
            setting.commands.append(command)


def settings_page(settings: list[Setting]) -> str:
    out = generated("Settings", "the table of settings in `src/base/config.cpp` and the help of the commands")
    out += """
cutegen searches these places in order and uses the first value that it finds:

1. The flag of the command.
2. The environment variable, unless it is empty.
3. `cutegen.toml` in the current folder.
4. The user's file: `$XDG_CONFIG_HOME/cutegen/config.toml`, or else `~/.config/cutegen/config.toml`.
5. The default.

The files contain `key = value` lines, such as `device = "sim:a100"`. An unknown key, a value of a wrong type or a value
out of range is an error (exit code 2). The error message names the file and the line.
[environment.md](environment.md) lists the variables that are not settings.

| key | flag | variable | default |
|---|---|---|---|
"""
    for s in settings:
        default = f"`{s.default}`" if s.default else "empty"
        flag = f"`{s.flags}`" if s.flags else "none"
        out += f"| [`{s.key}`](#{s.key}) | {flag} | `{s.variable}` | {default} |\n"
    for s in settings:
        out += f"\n## {s.key}\n\n{paragraph(plain(sentence(s.meaning)))}\n- Value: {s.kind()}\n"
        if s.commands:
            out += f"- Commands that have this flag: {', '.join(f'`{name}`' for name in s.commands)}\n"
        elif s.is_read:
            out += "- No command has a flag for it.\n"
        if not s.is_read:
            out += "- No command reads it: it has no effect yet.\n"
    return out


def is_read(setting: Setting, code: list[str]) -> bool:
    use = re.compile(rf'\b(?:text|integer|boolean|number)\("{setting.key}"\)')
    return any(use.search(text) for text in code)


# ---- plan --------------------------------------------------------------------------------------

PLAN_OBJECTS = {"launch": "Step: launch", "fill": "Step: fill", "argument": "Argument", "scratch": "Scratch",
                "tensor_map": "Tensor map", "im2col": "Im2col mode"}
PLAN_WORDS = {"identifier": "Name", "tensor": "Tensor", "expression": "Expression"}
SHORT = {"identifier": "name", "tensor": "tensor", "expression": "expression", "step": "[launch](#step-launch) or "
         "[fill](#step-fill)", "argument": "[argument](#argument)", "scratch": "[scratch](#scratch)",
         "tensor_map": "[tensor map](#tensor-map)", "im2col": "[im2col](#im2col-mode)"}


def plan_type(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    """The type of a field, in words."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return SHORT.get(name) or plan_type(definitions[name], definitions)
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if node.get("type") == "array":
        least, most = node.get("minItems", 0), node["maxItems"]
        return f"list of {least} to {most}: {plan_type(node['items'], definitions)}"
    if node.get("type") == "object":
        value = plan_type(node["additionalProperties"], definitions)
        return f"object with at most {node['maxProperties']} entries: name -> {value}"
    return {"string": "text", "number": "number", "boolean": "`true` or `false`"}[node["type"]]


def plan_fields(title: str, node: dict[str, Any], definitions: dict[str, Any]) -> str:
    required = node.get("required", [])
    one_of = node.get("maxProperties") == 1
    out = "| field | value | needed | meaning |\n|---|---|---|---|\n"
    longer = ""
    for name, field in node["properties"].items():
        if not field.get("description"):
            raise ReferenceFault(f"schemas/plan.v1.json: '{name}' of {title} has no description")
        value, meaning = plan_type(field, definitions), field["description"]
        if len(value) > 100:
            longer += "\n" + paragraph(f"Values of `{name}`: {value}.")
            value = "listed below"
        if "default" in field:
            value += f" (default `{json.dumps(field['default']).strip(chr(34))}`)"
        needed = "one of these" if one_of else "yes" if name in required else "no"
        out += f"| `{name}` | {value} | {needed} | {plain(meaning)} |\n"
    return out + longer


def plan_page(schema: dict[str, Any]) -> str:
    definitions = schema["definitions"]
    out = generated("The plan: `plan.json`", "`schemas/plan.v1.json`")
    out += f"\n{paragraph(plain(schema['description']))}"
    out += "\nUnknown fields are errors. `cutegen check DIR` checks a plan.\n\n## Plan\n\n"
    out += plan_fields("the plan", schema, definitions)
    for name, title in PLAN_WORDS.items():
        out += f"\n## {title}\n\n{prose(plain(sentence(definitions[name]['description'])))}"
    for name, title in PLAN_OBJECTS.items():
        node = definitions[name]
        out += f"\n## {title}\n\n{paragraph(plain(sentence(node['description'])))}\n"
        out += plan_fields(name, node, definitions)
    left = {name for name, node in definitions.items() if "properties" in node} - set(PLAN_OBJECTS)
    if left:
        raise ReferenceFault(f"schemas/plan.v1.json: PLAN_OBJECTS of tools/reference.py lacks {sorted(left)}")
    return out


# ---- events ------------------------------------------------------------------------------------

EVENT = re.compile(r'\{\.type = EventType::(\w+),\s*\.version = (\d+),\s*\.written =\s*' + STRINGS +
                   r',\s*\.fields =\s*' + STRINGS + r'\}')


@dataclasses.dataclass
class Field:
    name: str
    always: bool
    meaning: str


@dataclasses.dataclass
class EventType:
    name: str
    version: int
    written: str
    fields: list[Field]

    def faults(self, data: dict[str, Any]) -> Iterator[str]:
        """How the data of a recorded event differs from the table."""
        known = {field.name for field in self.fields} | {"clock_ms"}
        for name in sorted(set(data) - known):
            yield f"event '{self.name}' has a field '{name}' that src/store/events.cpp does not list"
        for field in self.fields:
            if field.always and field.name not in data:
                yield f"event '{self.name}' lacks its field '{field.name}'"


def events_of(text: str) -> list[EventType]:
    table = between(text, "kTypes[] = {", "\n};", "src/store/events.cpp")
    found = []
    for name, version, written, fields in EVENT.findall(table):
        listed = []
        for line in literal(fields).splitlines():
            field, separator, meaning = line.partition(": ")
            if not separator:
                raise ReferenceFault(f"src/store/events.cpp: '{line}' of '{name}' is not 'field: meaning'")
            listed.append(Field(field.rstrip("?"), not field.endswith("?"), meaning))
        found.append(EventType(name, int(version), literal(written), listed))
    if len(found) != len(re.findall(r"EventType::", table)):
        raise ReferenceFault("src/store/events.cpp: kTypes has a row that this script cannot read")
    return found


def event_types(root: Path = ROOT) -> dict[str, EventType]:
    """The table of the sources, by name."""
    text = (root / "src/store/events.cpp").read_text(encoding="utf-8")
    return {event.name: event for event in events_of(text)}


def events_page(events: list[EventType]) -> str:
    out = generated("Events of the journal", "the table of events in `src/store/events.cpp`")
    out += """
[journal.md](../journal.md) says how cutegen writes, resumes and replays a journal. Every event also has `clock_ms`:
the time that the run has used so far, without pauses in which no process worked on it.

| event | version | written |
|---|---|---|
"""
    for event in events:
        out += f"| [`{event.name}`](#{event.name}) | {event.version} | {plain(event.written)} |\n"
    for event in events:
        out += f"\n## {event.name}\n\n"
        if not event.fields:
            out += "No other fields.\n"
        for field in event.fields:
            absent = "" if field.always else " (optional)"
            out += f"- `{field.name}`{absent}: {plain(field.meaning)}\n"
    return out


# ---- environment -------------------------------------------------------------------------------


def variables_read(code: list[str]) -> set[str]:
    """The variables CUTEGEN_... that the sources read in addition to the settings."""
    return set().union(*(re.findall(r'"(CUTEGEN_[A-Z_]+)"', text) for text in code)) - INTERNAL


def environment_faults(page: str, code: list[str], settings: list[Setting]) -> Iterator[str]:
    wanted = variables_read(code) - {setting.variable for setting in settings}
    named = set(re.findall(r"^\| `(CUTEGEN_[A-Z_]+)`", page, re.MULTILINE))
    for name in sorted(wanted - named):
        yield f"{PAGES}/environment.md:1: error: lacks {name}, which the sources read"
    for name in sorted(named - wanted):
        yield f"{PAGES}/environment.md:1: error: names {name}, which no source reads, or which is a setting"


# ---- all of it ---------------------------------------------------------------------------------


def is_code(path: Path) -> bool:
    """Whether a file is part of the programs, not of their tests."""
    return (path.parts[0] in ("src", "apps") and path.suffix in sources.CPP and "testing" not in path.parts
            and not path.stem.endswith("_test") and not path.stem.startswith("test_"))


def read_code(root: Path) -> list[str]:
    return [(root / path).read_text(encoding="utf-8") for path in sources.tracked(root) if is_code(path)]


def pages(root: Path, program: Program) -> tuple[dict[str, str], list[Setting], list[str]]:
    """The text of every generated page, the settings, and the sources."""
    overview = program.help()
    helps = {name: program.help(name) for name in commands_of(overview)}
    settings = settings_of((root / "src/base/config.cpp").read_text(encoding="utf-8"))
    code = read_code(root)
    for setting in settings:
        find_flags(setting, helps)
        setting.is_read = is_read(setting, code)
    schema = json.loads((root / "schemas/plan.v1.json").read_text(encoding="utf-8"))
    text = {"commands.md": commands_page(overview, helps), "settings.md": settings_page(settings),
            "plan.md": plan_page(schema), "events.md": events_page(list(event_types(root).values()))}
    return text, settings, code


def first_difference(wanted: str, found: str) -> int:
    """The number of the first line that differs."""
    pairs = list(zip(wanted.splitlines(), found.splitlines()))
    return next((i for i, (a, b) in enumerate(pairs, 1) if a != b), len(pairs) + 1)


def check(root: Path, text: dict[str, str]) -> Iterator[str]:
    for name, wanted in text.items():
        path = root / PAGES / name
        found = path.read_text(encoding="utf-8") if path.is_file() else ""
        if found != wanted:
            line = first_difference(wanted, found)
            yield f"{PAGES / name}:{line}: error: is not what the code says (run: tools/reference.py)"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write docs/reference/ from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page differs")
    parser.add_argument("--bin", type=Path, help="folder of the built programs (default: $CUTEGEN_BIN, "
                        "or build/release/bin)")
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    options = parser.parse_args(arguments)
    folder = options.bin or Path(os.environ.get("CUTEGEN_BIN", options.root / "build/release/bin"))
    try:
        text, settings, code = pages(options.root, Program(folder))
    except ReferenceFault as error:
        print(f"reference: error: {error}", file=sys.stderr)
        return 2
    if not options.check:
        for name, page in text.items():
            (options.root / PAGES / name).write_text(page, encoding="utf-8")
    environment = (options.root / PAGES / "environment.md").read_text(encoding="utf-8")
    faults = [*check(options.root, text), *environment_faults(environment, code, settings)]
    for fault in faults:
        print(fault)
    print(f"reference: {len(text)} generated pages, {len(faults)} problem(s)")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
