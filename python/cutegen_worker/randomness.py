# SPDX-License-Identifier: Apache-2.0
"""Finds random numbers that forward() draws, and refuses the module.

Two runs of such a module differ, so it has no truth. Every operator that draws has torch's tag
`nondeterministic_seeded`, but for some of them an argument decides whether they draw.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import graph
from .errors import WorkerError
from .record import SEEDED
from .state import seed_all

if TYPE_CHECKING:
    import torch
    from .record import Call
    from .source import Source
    from .trace import Trace

RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
PROBABILITY = ("dropout_p", "p", "dropout")  # if such an argument is zero, the call draws nothing
TRAINS = ("train", "training")
EVAL = ("remove `mode = \"train\"` from the side file, so that the module runs in eval mode, "
        "or pass the random tensor as an input")
PASSED = "pass the random tensor (a mask, noise, indices) as an input of forward()"


def draws(call: Call) -> bool:
    """Whether this call draws random numbers."""
    if SEEDED not in call.func.tags:
        return False
    args, kwargs = graph.normal(call)
    named = dict(zip((a.name for a in call.func._schema.arguments), args)) | kwargs
    if call.func.overloadpacket.__name__ in RECURRENT:
        return bool(named["train"] and named["dropout"] and named["num_layers"] > 1)
    if any(named.get(key) is False for key in TRAINS):
        return False
    if call.func.overloadpacket.__name__.startswith(("bernoulli", "geometric")):
        return True  # their p is not a dropout rate
    rates = [named[key] for key in PROBABILITY if key in named]
    return not rates or any(rate is None or rate > 0 for rate in rates)


def refuse(trace: Trace, train: bool) -> None:
    """Raises an error for the first random call on which a result depends."""
    for call in trace.calls:
        if not draws(call):
            continue
        where, module = call.site or ("", None)
        name = call.func.overloadpacket.__name__.strip("_")
        owner = path_of(trace.model, module)
        what = f"{owner} draws random numbers" if owner else "forward() draws random numbers"
        raise WorkerError(f"{what} (aten.{name}), so two runs differ and there is no truth", where,
                          EVAL if train and owner else PASSED)


def refuse_on_host(trace: Trace, source: Source, train: bool) -> None:
    """Raises an error if forward() draws from `random` or `numpy.random`, and the draw changes what it computes."""
    if not trace.draws_on_host:
        return
    seed_all(time.time_ns())  # a constant could be the seed of the first trace, too
    if not trace.alike(type(trace)(source, {}, train)):
        raise WorkerError("forward() draws random numbers (random or numpy.random), so two runs differ and there is no "
                          "truth", trace.file, "draw the number in __init__() or at import, or pass it as an input")


def path_of(model: torch.nn.Module, module: torch.nn.Module | None) -> str | None:
    """Returns "Dropout 'block.drop'" for a submodule, and nothing for the task's own Model."""
    for path, found in model.named_modules():
        if found is module and path:
            return f"{type(module).__name__} '{path}'"
    return None
