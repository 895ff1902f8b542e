# SPDX-License-Identifier: Apache-2.0
"""The accuracy that the user requests with command-line flags and keys of the side file.

If a flag and the side file both name the math mode or a bound, they must agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import WorkerError
from .modes import Modes, loosened
from .side import BOUNDS
from .wire import Json

if TYPE_CHECKING:
    from .side import Side
    from .trace import Trace


class Asked:
    """`flags`: {key: {"value": ..., "source": "flag --rtol"}} of the request."""

    def __init__(self, flags: Json, side: Side) -> None:
        self.flags, self.side = flags, side
        self.math_mode = self.one("math_mode", side.math_mode)
        self.bounds = {k: self.one(k, side.bounds.get(k)) for k in BOUNDS}
        self.bounds = {k: v for k, v in self.bounds.items() if v is not None}
        if self.bounds and not any(self.bounds.values()):
            names = " and ".join(self.bounds)
            raise WorkerError(f"{names} = 0: this bound accepts no rounding at all",
                              self.place(next(iter(self.bounds))),
                              "give a number above 0, or omit it: cutegen's own tolerance applies anyway")

    def one(self, key: str, of_side: Any) -> Any:
        if key not in self.flags:
            return of_side
        value, source = self.flags[key]["value"], self.flags[key]["source"]
        if of_side is not None and of_side != value:
            raise WorkerError(f"{source} asks for {key} {value}, the side file for {of_side}",
                              self.side.place(key), "remove one of them, or give both the same value")
        return value

    def place(self, key: str) -> str:
        return self.side.place(key) if key in self.side.values else self.flags[key]["source"]

    def refuse_loosening(self, trace: Trace) -> None:
        """Refuses a mode that would loosen the check of a result."""
        found = loosened(trace, self.math_mode)
        if found is None:
            return
        lost = str(found[1]).removeprefix("torch.")
        kept = {"bf16": "bfloat16", "fp16": "float16"}.get(self.math_mode, "float32")
        raise WorkerError(f"math_mode {self.math_mode} would loosen the check: '{found[0]}' depends on {lost} tensors",
                          self.place("math_mode"),
                          "omit it; to let programs round more, convert the tensors in forward(), as in "
                          f"x.to(torch.{kept})")

    def put(self, task: Json, trace: Trace) -> None:
        """Writes the math modes and bounds into a described task."""
        task.update(self.bounds)
        if self.math_mode is not None:
            self.refuse_loosening(trace)
            task["math_mode"], task["math_mode_asked"] = self.math_mode, True
            return
        found = Modes(trace)
        task["math_mode"] = found.task
        task["notes"] += found.notes
        if found.tf32_convolutions:
            task["tf32_convolutions"] = True
        for tensor in task["tensors"]:
            if tensor["name"] in found.results:
                tensor["math_mode"] = found.results[tensor["name"]]
            if tensor["name"] in found.without_convolution:
                tensor["without_convolution"] = True
