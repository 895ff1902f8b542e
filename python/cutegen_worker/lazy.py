# SPDX-License-Identifier: Apache-2.0
"""Delays the import of torch._dynamo until something needs it, because it takes two seconds.

At the first call of many functions (such as meta kernels), torch passes them to torch._dynamo.disable. This
worker compiles nothing, so a stand-in returns the function unchanged. Any other use of torch._dynamo loads
the real module.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import torch

NAME = "torch._dynamo"


class StandIn(types.ModuleType):
    @staticmethod
    def disable(fn: Any = None, recursive: bool = True, **_: Any) -> Any:
        return fn if fn is not None else lambda f: f

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
            torch.__dict__.pop("_dynamo", None)
        return getattr(importlib.import_module(NAME), name)


def install() -> None:
    if NAME not in sys.modules:
        stand_in = StandIn(NAME)
        sys.modules[NAME] = stand_in
        torch._dynamo = stand_in
