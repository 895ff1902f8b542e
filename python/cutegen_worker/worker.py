# SPDX-License-Identifier: Apache-2.0
"""What the worker keeps between requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .slot import Slot

if TYPE_CHECKING:
    from .baseline import Opened
    from .describe import Described
    from .memory import Mapped


class Worker:
    def __init__(self) -> None:
        self.slot = Slot()
        self.opened: Opened | None = None  # the module whose baselines are timed
        self.described: Described | None = None  # the task described last
        self.memory: list[Mapped] = []  # the evaluator's memory for the next fill
