# SPDX-License-Identifier: Apache-2.0
"""What a module of ordinary.py consists of."""

import typing


class Module(typing.NamedTuple):
    """A module: its layers, what it returns, and the shapes of its inputs (or expressions that make them)."""

    name: str
    dtype: str
    result: str
    inputs: dict[str, tuple[int, ...] | str]
    layers: str = ""


def image(batch: int, channels: int, side: int) -> dict[str, tuple[int, ...] | str]:
    return {"x": (batch, channels, side, side)}
