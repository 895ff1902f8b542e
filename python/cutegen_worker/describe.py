# SPDX-License-Identifier: Apache-2.0
"""Describes a task file as the JSON of src/core/task.h. The caller computes its id."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from . import randomness, real_run, shrink
from .asked import Asked
from .errors import WorkerError
from .side import Side
from .source import Source
from .trace import SIZES, Trace
from .wire import Json

if TYPE_CHECKING:
    from .worker import Worker


def describe(request: Json) -> Json:
    file = request["file"]
    side = Side(request.get("side") or "", request.get("side_file") or file)
    wishes = Asked(request.get("asked", {}), side)
    source = Source(request["source"], file)
    official = Trace(source, {}, side.train)
    randomness.refuse(official, side.train)
    randomness.refuse_on_host(official, source, side.train)
    refuse_empty(official)
    cases = [official.case("official", "official", {}, side.official_weight)]
    notes, varying, others = official.remarks(), set(), []
    if request.get("shrink", True):
        made, traces, note = shrink.shapes(source, official, side.train, request["small_elements"])
        cases += made
        varying = differing(official, traces)
        others += traces
        if note:
            notes.append(note)
    for case, trace in asked(request, source, side):
        cases.append(case)
        varying |= differing(official, [trace])
        others.append(trace)
    tensors = official.tensor_list()
    declare_mutated(side, official, notes)
    task = {
        "schema": "cutegen.task.v1",
        "id": "",
        "name": os.path.splitext(os.path.basename(file))[0],
        "file": file,
        "source": source.text,
        "tensors": tensors,
        "attributes": official.attributes(varying),
        "arguments": [{"name": n, "value": v} for n, v in official.arguments],
        "train_mode": side.train,
        "shapes": cases,
        "graph": official.graph(others),
        "workload": official.workload(),
        "notes": notes,
    }
    if official.returns != [n for n, _ in official.outputs]:
        task["returns"] = official.returns
    wishes.put(task, official)
    if side.tolerance is not None:
        task["tolerance"] = side.tolerance
    if side.baseline is not None:
        task["baseline"] = side.baseline
    return task


def refuse_empty(official: Trace) -> None:
    """Refuses a module that has nothing to compute at the official shape."""
    if official.outputs and not official.mutated and all(t.numel() == 0 for _, t in official.outputs):
        raise WorkerError("forward() returns only empty tensors", official.file,
                          "use sizes above 0 in get_inputs() and get_init_inputs()")


class Described(NamedTuple):
    """A task's text and its trace at the official shape. `key`: task, file and mode."""

    key: tuple[str, str, bool]
    source: Source
    official: Trace


def describe_shapes(request: Json, worker: Worker) -> Json:
    """Describes the task at each wanted set of sizes. Null if the task is another program at these sizes, or fails."""
    task_id, file, train = request["task_id"], request["file"], request["train_mode"]
    last = worker.described
    if last is None or last.key != (task_id, file, train):
        source = Source(request["source"], file)
        last = worker.described = Described((task_id, file, train), source, Trace(source, {}, train))
    sizes = shrink.varying(last.source)
    found = [case_at(last.source, last.official, train, wanted) for wanted in request["shapes"]]
    return {"sizes": sizes, "shapes": found}


def case_at(source: Source, official: Trace, train: bool, constants: dict[str, int]) -> Json | None:
    try:
        trace = Trace(source, constants, train)
    except WorkerError:
        return None
    if not shrink.same_program(official, trace):
        return None
    if real_run.is_small(trace) and real_run.failure(source, constants, trace, train) is not None:
        return None
    name = "derived " + ", ".join(f"{k}={v}" for k, v in constants.items())
    return trace.case(name, "derived", constants)


def differing(official: Trace, traces: list[Trace]) -> set[str]:
    """Attributes that vary with the shape. A plan must take them from symbols, not from attr()."""
    return {n for t in traces for n, v in official.scalars.items() if t.scalars.get(n) != v}


def asked(request: Json, source: Source, side: Side) -> Iterator[tuple[Json, Trace]]:
    """The user's own shapes, from the side file and from the request."""
    names: set[str] = set()
    for entry in side.shapes:
        if entry.name in names or shrink.is_own_name(entry.name):
            raise WorkerError(f"two shapes have the name '{entry.name}'", side.place_in(entry.number, "name"),
                              "rename one")
        names.add(entry.name)
        if entry.weight and all(source.constants.get(k, source.model_sizes.get(k)) == v
                                for k, v in entry.constants.items()):
            raise WorkerError(f"shape '{entry.name}' has the sizes of the official shape, which is timed anyway",
                              side.place_in(entry.number, "constants"),
                              "change a constant; to weigh the official shape, name the entry 'official'")
        try:
            case = user_case(source, side, entry.name, entry.weight, entry.constants)
        except WorkerError as error:
            remedy = "give constants at which the module runs" if error.remedy == SIZES else error.remedy
            raise WorkerError(with_line(error, source.file), side.place_in(entry.number, "constants"), remedy) from None
        yield case
    for i, constants in enumerate(request.get("user_shapes", [])):
        name = f"given{i + 1}"
        if name in names:
            raise WorkerError(f"two shapes have the name '{name}'", side.file, "rename one")
        yield user_case(source, side, name, 0.0, constants)  # tested, not timed


def user_case(source: Source, side: Side, name: str, weight: float, constants: dict[str, int]) -> tuple[Json, Trace]:
    try:
        trace = Trace(source, constants, side.train)
    except WorkerError as error:
        raise WorkerError(f"shape '{name}': {error.message}", error.where, error.remedy) from None
    why = real_run.failure(source, constants, trace, side.train) if real_run.is_small(trace) else None
    if why is not None:
        raise WorkerError(f"shape '{name}': {why}", source.file, SIZES)
    return trace.case(name, "user", constants, weight), trace


def with_line(error: WorkerError, file: str) -> str:
    """The error's message. If the error names a line of the task file, the message contains the line."""
    line = error.where.removeprefix(file + ":")
    return error.message if line == error.where else f"{error.message} ({os.path.basename(file)}:{line})"


def declare_mutated(side: Side, official: Trace, notes: list[str]) -> None:
    for name in side.mutated:
        if name not in official.tensors:
            side.wrong(f"`mutated` does not name a tensor: '{name}'", "mutated",
                       "one of " + ", ".join(official.tensors))
        if name not in official.mutated:
            notes.append(f"the side file says that '{name}' is mutated, but forward() does not change it")
