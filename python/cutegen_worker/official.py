# SPDX-License-Identifier: Apache-2.0
"""A set at the official shape, made on the GPU and written into the evaluator's memory.

A set has the parts described in values.py, but `margin` replaces the sensitivity: the larger of the sensitivity
and the native reference's error among the elements of nearest magnitude. The comparison kernel needs the
margin in addition to truth and native result. The rule equals src/tensor/compare.cpp's.
"""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from . import draw, extremes, values
from .errors import WorkerError, first_line
from .facts import facts_of
from .memory import Mapped
from .names import DTYPES, state_tensors
from .source import Source, clean_state
from .wire import Json

Margins = list[Tensor | None]

REACH = 32  # neighbours by magnitude on either side
WINDOW = 1 << 27  # elements sorted at once; a sort needs six times their bytes
BY_NAME = {name: dtype for dtype, name in DTYPES.items()}
MOST_PIECES = 64
AGREES = 0.05  # relative to an output's scale; how much parts of a batch may differ from the whole by rounding


def take_memory(request: Json, descriptors: list[int], memory: list[Mapped]) -> Json:
    """Maps the memory for the next fill."""
    if request["first"]:
        drop_memory(memory)
    for descriptor, count in zip(descriptors, request["bytes"]):
        memory.append(Mapped(descriptor, count))
    return {}


def drop_memory(memory: list[Mapped]) -> None:
    while memory:
        memory.pop().close()


def fill(request: Json, memory: list[Mapped]) -> Json:
    """Writes a set into the evaluator's memory. Returns notes on it."""
    device = torch.device("cuda", torch.cuda.current_device())
    torch.cuda.reset_peak_memory_stats()
    failed, notes = None, []
    facts_of(request)  # before the default device is set, because a trace resets it
    try:
        with clean_state(request["file"]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.set_default_device(device)
            notes = make(request, device, memory)
    except torch.OutOfMemoryError as error:
        failed = too_large(first_line(error))
    except WorkerError as error:  # drops the traceback, which holds tensors
        failed = WorkerError(error.message, error.where, error.remedy, error.kind)
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    drop_memory(memory)
    if failed:
        raise failed
    return {"notes": notes}


def too_large(text: str) -> WorkerError:
    free, total = torch.cuda.mem_get_info()
    used = torch.cuda.max_memory_allocated()
    text = text.split(" GPU ")[0]  # drops details on the allocator
    return WorkerError(f"its float64 truth needs more than {used / 2**30:.1f} GiB in addition to the inputs, "
                       f"and {free / 2**30:.1f} of {total / 2**30:.1f} GiB were free: {text}",
                       "", "", "unsupported")


def make(request: Json, device: torch.device, memory: list[Mapped]) -> list[str]:
    seed = values.seed_of(request["seed"], request["family"], request["shape"])
    source = Source(request["source"], request["file"])
    family = request["family"]
    for domain in draw.domains(family, facts_of(request), request):
        reference, generator = values.prepare(source, request, seed, domain, device)
        plain = values.in_domain(reference, family, domain)
        if plain is not None:
            return write(Places(request["slots"], memory), reference, generator, request, plain)
    raise WorkerError("the module cannot compute on values of this family", request["file"])


class Places:
    """Where to write each part of each tensor."""

    def __init__(self, slots: list[Json], memory: list[Mapped]) -> None:
        self.memory = memory
        self.slots = {(s["name"], s["part"]): s for s in slots}

    def view(self, name: str, part: str) -> Tensor | None:
        """A view of the place, or None if the request does not want the part."""
        slot = self.slots.get((name, part))
        if slot is None:
            return None
        return self.memory[slot["memory"]].tensor(slot["offset"], slot["shape"], BY_NAME[slot["dtype"]])

    def put(self, name: str, part: str, tensor: Tensor) -> Tensor:
        """Copies the value to its place and returns a view. The shape must be as described."""
        view = self.view(name, part)
        if view is None:
            raise WorkerError(f"'{name}' was not described", "", "describe the task again")
        if view.shape != tensor.shape:
            raise WorkerError(f"'{name}' has shape {list(tensor.shape)}; {list(view.shape)} was "
                              "described", "", "make sizes depend on constants only")
        return view.copy_(tensor)


def write(places: Places, reference: values.Reference, generator: Generator, request: Json,
          plain: list[Tensor]) -> list[str]:
    permitted, names = values.Permitted(request), request["outputs"]
    notes: list[str] = []
    taken = {name for name, _ in reference.inputs.tensors()}
    for name, t in reference.inputs.tensors():
        places.put(name, "value", t.detach())
    for name, _, t in state_tensors(reference.model):
        places.put("self." + name if name in taken else name, "value", t.detach())
    if len(names) != len(plain):
        raise WorkerError(f"forward() gave {len(plain)} results; {len(names)} were described",
                          request["file"], "make the number of outputs constant")
    if not permitted.as_shipped():
        plain = values.native(reference, permitted)
    native = [places.put(name, "native", t.detach()) for name, t in zip(names, plain)]
    del plain
    margins = [places.view(name, "margin") for name in names]
    try:
        truth = truths(places, reference, names, native, notes)
        with values.truthfully():
            moved(reference, truth, permitted, generator, margins)
            put_steps(reference, native, generator, margins)
    except WorkerError as error:
        notes.append("float64 does not run: " + first_line(error.message))
        found = reference.run(lambda _, t: t)
        truth = [places.put(name, "truth", t.detach().double()) for name, t in zip(names, found)]
        clear(margins)
    for margin, own, t in zip(margins, native, truth):
        if margin is None or not values.floating(own):
            continue
        if request["family"] == draw.EXTREMES:
            extremes.settle(own, t)
            extremes.loosen(margin, t)
        widen(margin.view(-1), own.view(-1), t.view(-1))
    if request["family"] == draw.EXTREMES:
        put_unsure(margins, lambda: values.overflowing(reference, truth))
    if values.has_ties(request):
        put_unsure(margins, lambda: values.ties(reference, permitted))
    put_turns(reference, truth, permitted, margins)
    if values.order_matters(request) or not all(map(values.finite, native)):
        mark(reference, permitted, native, margins)
    return notes


def mark(reference: values.Reference, permitted: values.Permitted, native: list[Tensor], margins: Margins) -> None:
    """Marks values whose class depends on the order of evaluation, if memory suffices for that."""
    try:
        values.put_marks(margins, values.order_marks(reference, permitted, native))
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()


def put_steps(reference: values.Reference, native: list[Tensor], generator: Generator, margins: Margins) -> None:
    """Marks integers that a rounding of the inputs moves by one. Marks none if memory does not suffice."""
    try:
        values.put_steps(margins, values.steps(reference, native, generator))
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()


def put_turns(reference: values.Reference, truth: list[Tensor], permitted: values.Permitted, margins: Margins) -> None:
    """Permits the results of uncertain decisions. Permits none if memory does not suffice."""
    try:
        values.put_turns(margins, truth, values.turns(reference, permitted))
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()


def put_unsure(margins: Margins, marks: Callable[[], list[Tensor]]) -> None:
    """Marks elements that depend on an order. Marks none if memory does not suffice."""
    try:
        values.put_unsure(margins, marks())
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()


def truths(places: Places, reference: values.Reference, names: list[str], native: list[Tensor],
           notes: list[str]) -> list[Tensor]:
    """Writes the float64 results to their places."""
    with values.truthfully():
        found = in_one_or_more(reference, lambda _, t: t.double(), torch.float64, native)
    for name, t in zip(names, found):
        if values.floating(t) and t.dtype != torch.float64:
            notes.append(f"output '{name}' is {t.dtype} even for float64 inputs")
    return [places.put(name, "truth", t.detach().double()) for name, t in zip(names, found)]


def clear(margins: Margins) -> None:
    for margin in margins:
        if margin is not None:
            margin.zero_()


def moved(reference: values.Reference, truth: list[Tensor], permitted: values.Permitted, generator: Generator,
          margins: Margins) -> None:
    """Writes the sensitivity of every output into its margin."""
    clear(margins)
    of = [permitted.of(k) for k in range(len(truth))]
    for mode in dict.fromkeys(of):
        for change, roundings in values.moves(mode, generator, itertools.count()):
            for k, t in enumerate(in_one_or_more(reference, change, torch.float64, truth)):
                margin = margins[k]
                if margin is not None and values.floating(t) and of[k] == mode:
                    values.keep_larger(margin.view(-1), t.detach().reshape(-1),
                                       truth[k].view(-1), roundings)
                del t
    with values.orders.RoundedAnew(generator) as anew:
        again = in_one_or_more(reference, lambda _, t: t.double(), torch.float64, truth)
    for k, t in enumerate(again):
        margin = margins[k]
        if margin is not None and values.floating(t):
            values.keep_larger(margin.view(-1), t.detach().reshape(-1), truth[k].view(-1),
                               1 / values.UNSURE)
    del again
    for mode in dict.fromkeys(of) if anew.shiftable else ():
        for shift, roundings in values.shifts(mode, generator, anew.shiftable):
            with shift:
                shifted = in_one_or_more(reference, lambda _, t: t.double(), torch.float64, truth)
            for k, t in enumerate(shifted):
                margin = margins[k]
                if margin is not None and values.floating(t) and of[k] == mode:
                    values.keep_larger(margin.view(-1), t.detach().reshape(-1), truth[k].view(-1), roundings)
            del shifted


def in_one_or_more(reference: values.Reference, change: values.Change, dtype: torch.dtype,
                   like: list[Tensor]) -> list[Tensor]:
    """The outputs of one run or, if it does not fit, of runs on parts of the batch.

    Parts are possible only if every output has as many leading rows as the batch, and if the results agree
    with `like`: a module that mixes rows gives other results in parts.
    """
    try:
        return reference.run(change, dtype)
    except torch.OutOfMemoryError:
        rows = batch_of(reference, like)
        if rows < 2:
            raise
    count = 2
    while True:
        torch.cuda.empty_cache()
        try:
            return in_parts(reference, change, dtype, like, rows, count)
        except torch.OutOfMemoryError:
            count *= 2
            if count > min(rows, MOST_PIECES):
                raise


def batch_of(reference: values.Reference, like: list[Tensor]) -> int:
    sizes = {t.shape[0] if t.dim() else 0 for t in like}
    first = reference.inputs.tensors()[0][1]
    rows = first.shape[0] if first.dim() else 0
    return rows if sizes == {rows} else 0


def in_parts(reference: values.Reference, change: values.Change, dtype: torch.dtype, like: list[Tensor], rows: int,
             count: int) -> list[Tensor]:
    whole = [torch.empty(t.shape, dtype=dtype if values.floating(t) else t.dtype) for t in like]
    step = -(-rows // count)
    for at in range(0, rows, step):
        some = slice(at, min(at + step, rows))
        part = reference.rows(some, rows).run(change, dtype)
        for t, out, known in zip(part, whole, like):
            if t.shape != out[some].shape or not agree(t, known[some]):
                raise torch.OutOfMemoryError("the batch cannot be split")
            out[some] = t
        del part
    return whole


def agree(a: Tensor, b: Tensor) -> bool:
    if not values.floating(a):
        return torch.equal(a, b.to(a.dtype))
    a, b = a.reshape(-1), b.reshape(-1)
    for part in values.pieces(a.numel()):
        x, y = a[part].double(), b[part].double()
        both = torch.isfinite(x) & torch.isfinite(y)
        x, y = x[both], y[both]
        if x.numel() and (x - y).abs().mean() > AGREES * y.abs().mean():
            return False
    return True


def widen(margin: Tensor, native: Tensor, truth: Tensor) -> None:
    """margin = max(margin, the native error smoothed by magnitude), in stretches of WINDOW."""
    for at in range(0, margin.numel(), WINDOW):
        part = slice(at, min(at + WINDOW, margin.numel()))
        smooth = smoothed(truth[part], native[part])
        margin[part] = torch.maximum(margin[part], smooth)


def smoothed(truth: Tensor, native: Tensor) -> Tensor:
    """The largest error of the native result among elements within REACH ranks by magnitude."""
    error = (native.double() - truth).abs()
    error = torch.where(torch.isfinite(error), error, 0.0)
    order = torch.sort(truth.abs(), stable=True).indices  # NaN sorts last and keeps its own error
    count = truth.numel() - int(torch.isnan(truth).sum())
    order = order[:count]
    largest = torch.nn.functional.pad(error[order], (REACH, REACH))
    for step in (1, 2, 4, 8, 16, 32):  # the maximum of 2, 4, ... 64 neighbours, then of 65
        largest = torch.maximum(largest[:-step], largest[step:])
    error[order] = torch.maximum(largest[:-1], largest[1:])
    return error
