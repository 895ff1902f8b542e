# SPDX-License-Identifier: Apache-2.0
"""Reads the side file NAME.toml, which adds what a task file cannot say. docs/tasks.md lists the keys."""

from __future__ import annotations

import difflib
import re
from typing import Any, NamedTuple, NoReturn

from .errors import WorkerError
from .wire import Json

MODES = ("fp32", "tf32", "fp16", "bf16")
KEYS = {
    "math_mode": str,
    "mode": str,
    "tolerance": (int, float),
    "rtol": (int, float),
    "atol": (int, float),
    "baseline": str,
    "mutated": list,
    "shapes": list,
    # How to launch a CUDA kernel; src/core/kernel_side.h reads these keys.
    "reference": str,
    "kernel": dict,
}
SHAPE_KEYS = {"name": str, "weight": (int, float), "constants": dict}
BOUNDS = ("rtol", "atol")
MOST_BOUND = 1e300
OFFICIAL = "official"
MOST_WEIGHT = 1e6
MOST_TIMED = 16  # because each is timed for every candidate
ENTRY = re.compile(r'\s*\[\[\s*"?shapes"?\s*\]\]')


def short(number: object) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)[:40]


class SideShape(NamedTuple):
    """An entry of [[shapes]]. `number` counts all entries from 0."""

    name: str
    weight: float
    constants: dict[str, int]
    number: int


class Side:
    def __init__(self, text: str, file: str) -> None:
        self.file, self.lines = file, text.splitlines()
        self.values = self.parse(text) if text else {}
        if "strides" in self.values:
            self.wrong("'strides' is reserved: cutegen supports only contiguous tensors", "strides",
                       "remove it and pass contiguous tensors")
        self.check(self.values, KEYS)
        self.math_mode = self.choice("math_mode", MODES, None)
        self.train = self.choice("mode", ("eval", "train"), "eval") == "train"
        self.tolerance = self.values.get("tolerance")
        if self.tolerance is not None and not 0 < self.tolerance <= 1e6:
            self.wrong(f"tolerance is {short(self.tolerance)}: it scales the accepted error",
                       "tolerance", "give a number above 0, at most 1e6 (default 1)")
        self.bounds = {k: self.bound(k) for k in BOUNDS if k in self.values}
        self.baseline = self.values.get("baseline")
        self.mutated = self.values.get("mutated", [])
        self.shapes = [self.shape(i, s) for i, s in enumerate(self.values.get("shapes", []))]
        self.official_weight = self.take_official()
        if sum(s.weight > 0 for s in self.shapes) > MOST_TIMED:
            self.wrong(f"more than {MOST_TIMED} shapes have a weight", "shapes",
                       "give weight = 0 to test a shape without timing it")

    def parse(self, text: str) -> Json:
        try:
            import tomllib
        except ImportError:
            raise WorkerError("side files need Python 3.11 or newer", self.file,
                              "name another interpreter with --python") from None
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: a number may have too many digits
            line = re.search(r"line (\d+)", str(error))
            where = f"{self.file}:{line.group(1)}" if line else self.file
            raise WorkerError(f"the side file does not parse: {error}", where,
                              "correct the TOML syntax") from None

    def place(self, key: str) -> str:
        line = next((i for i, text in enumerate(self.lines, 1)
                     if re.match(rf"\s*\[*\s*\"?{re.escape(key)}\b", text)), 1)
        return f"{self.file}:{line}"

    def place_in(self, number: int, key: str) -> str:
        """The line of `key` in this entry of [[shapes]], or else the line at which the entry begins."""
        starts = [i for i, text in enumerate(self.lines) if ENTRY.match(text)] + [len(self.lines)]
        if number + 1 >= len(starts):  # shapes = [{...}, {...}]
            return self.place("shapes")
        word = re.compile(rf"\b{re.escape(key)}\b")
        found = (i for i in range(*starts[number:number + 2]) if word.search(self.lines[i].split("#")[0]))
        return f"{self.file}:{next(found, starts[number]) + 1}"

    def wrong(self, message: str, key: str, remedy: str) -> NoReturn:
        raise WorkerError(message, self.place(key), remedy)

    def check(self, table: Json, keys: dict[str, Any]) -> None:
        for key, value in table.items():
            if key not in keys:
                near = difflib.get_close_matches(key, keys, 1)
                self.wrong(f"unknown key '{key}'", key,
                           f"did you mean '{near[0]}'?" if near else "one of " + ", ".join(keys))
            if not isinstance(value, keys[key]) or isinstance(value, bool):
                self.wrong(f"'{key}' has the wrong type", key, "see docs/tasks.md")

    def bound(self, key: str) -> float:
        value = self.values[key]
        if not 0 <= value <= MOST_BOUND:
            self.wrong(f"{key} is {short(value)}: it must bound the error", key,
                       "give a finite number, not negative")
        return float(value)

    def choice(self, key: str, values: tuple[str, ...], default: str | None) -> str | None:
        value = self.values.get(key, default)
        if value is not None and value not in values:
            self.wrong(f"{key} '{value}' is not known", key, "one of " + ", ".join(values))
        return value

    def shape(self, index: int, table: Any) -> SideShape:
        if not isinstance(table, dict):
            self.wrong("'shapes' must be a list of tables", "shapes", "write [[shapes]]")
        self.check(table, SHAPE_KEYS)
        constants = table.get("constants", {})
        for key, value in constants.items():
            if type(value) is not int or not 0 < value < 1 << 62:
                self.wrong(f"constant '{key}' must be a positive integer", key, "give a size")
        weight = table.get("weight", 1)
        if not 0 <= weight <= MOST_WEIGHT:
            self.wrong(f"weight must be from 0 to {MOST_WEIGHT:.0f}", "weight",
                       "the default is 1; with 0 the shape is tested but not timed")
        return SideShape(table.get("name", f"user{index + 1}"), float(weight), constants, index)

    def take_official(self) -> float:
        """Removes the entry `official` from the shapes. Returns its weight, or 1 without one."""
        weight = 1.0
        entries = [s for s in self.shapes if s.name == OFFICIAL]
        for entry in entries:
            if entry.constants:
                self.wrong("the shape 'official' has the constants of the task file", "shapes",
                           "give only its weight, or another name")
            if not entry.weight:
                self.wrong("the official shape needs a weight above 0", "weight",
                           "floor, profile and headline are about this shape: put the sizes that "
                           "matter into the task file")
            weight = entry.weight
        if len(entries) > 1:
            self.wrong("two shapes have the name 'official'", "shapes", "remove one")
        self.shapes = [s for s in self.shapes if s.name != OFFICIAL]
        return weight
