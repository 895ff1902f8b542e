# SPDX-License-Identifier: Apache-2.0
"""The side file NAME.toml: what a task file cannot say. Keys in docs/tasks.md."""

import difflib
import re

from .errors import WorkerError

MODES = ("fp32", "tf32", "fp16", "bf16")
KEYS = {
    "math_mode": str,
    "mode": str,
    "tolerance": (int, float),
    "baseline": str,
    "mutated": list,
    "shapes": list,
}
SHAPE_KEYS = {"name": str, "weight": (int, float), "constants": dict}


class Side:
    def __init__(self, text, file):
        self.file, self.lines = file, text.splitlines()
        self.values = self.parse(text) if text else {}
        if "strides" in self.values:
            self.wrong("'strides' is reserved: only contiguous tensors so far", "strides",
                       "remove it and pass contiguous tensors")  # fmt: skip
        self.check(self.values, KEYS)
        self.math_mode = self.choice("math_mode", MODES, "fp32")
        self.train = self.choice("mode", ("eval", "train"), "eval") == "train"
        self.tolerance = self.values.get("tolerance")
        if self.tolerance is not None and not 0 < self.tolerance <= 1e6:
            self.wrong("tolerance must be positive", "tolerance", "1 is the default rule")
        self.baseline = self.values.get("baseline")
        self.mutated = self.values.get("mutated", [])
        self.shapes = [self.shape(i, s) for i, s in enumerate(self.values.get("shapes", []))]

    def parse(self, text):
        try:
            import tomllib
        except ImportError:
            raise WorkerError("side files need Python 3.11 or newer", self.file,
                              "name another interpreter with --python") from None  # fmt: skip
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            line = re.search(r"line (\d+)", str(error))
            where = f"{self.file}:{line.group(1)}" if line else self.file
            raise WorkerError(f"the side file does not parse: {error}", where,
                              "mend the TOML syntax") from None  # fmt: skip

    def wrong(self, message, key, remedy):
        line = next((i for i, text in enumerate(self.lines, 1)
                     if re.match(rf"\s*\[*\s*\"?{re.escape(key)}\b", text)), 1)  # fmt: skip
        raise WorkerError(message, f"{self.file}:{line}", remedy)

    def check(self, table, keys):
        for key, value in table.items():
            if key not in keys:
                near = difflib.get_close_matches(key, keys, 1)
                self.wrong(f"unknown key '{key}'", key,
                           f"did you mean '{near[0]}'?" if near else "one of " + ", ".join(keys))  # fmt: skip
            if not isinstance(value, keys[key]) or isinstance(value, bool):
                self.wrong(f"'{key}' has the wrong type", key, "see docs/tasks.md")

    def choice(self, key, values, default):
        value = self.values.get(key, default)
        if value not in values:
            self.wrong(f"{key} '{value}' is not known", key, "one of " + ", ".join(values))
        return value

    def shape(self, index, table):
        if not isinstance(table, dict):
            self.wrong("'shapes' must be a list of tables", "shapes", "write [[shapes]]")
        self.check(table, SHAPE_KEYS)
        constants = table.get("constants", {})
        for key, value in constants.items():
            if type(value) is not int or not 0 < value < 1 << 62:
                self.wrong(f"constant '{key}' must be a positive integer", key, "give a size")
        weight = table.get("weight", 1)
        if not 0 <= weight < float("inf"):
            self.wrong("weight must not be negative", "weight", "1 is the default")
        return table.get("name", f"user{index + 1}"), float(weight), constants
