# SPDX-License-Identifier: Apache-2.0
"""Makes a set of values: inputs, parameters, native outputs, float64 truth and its sensitivity."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import itertools
import math
import mmap
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from . import casts, decisions, draw, extremes, float8, orders
from .errors import WorkerError, blame, first_line
from .facts import CHOSEN, facts_of
from .keep_double import keeping_double
from .mutated import results, state_of
from .names import DTYPES, Inputs, state_tensors, stray_tensors
from .orders import to_tf32
from .overflow import Overflows
from .source import Source, clean_state
from .state import move_state, seed_all
from .trace import SIZES, build
from .wire import Answer, Json

Change = Callable[[str, Tensor], Tensor]
Marks = tuple[Tensor | None, Tensor | None]  # where NaN is also correct; where any value is

ALIGN = 256
DRAWS = 3
EQUAL = ("==", "!=", ".eq(", ".ne(")  # the source text of a module that may compare whole numbers
UNSURE = 4  # the truth's uncertainty is this many times its change by another float64 rounding
FAR = 32  # size in roundings of changes in both directions, to reach across a kink
NEAR = 4  # the same for products in coarser modes, in which FAR would not be a small change
MOST_PAIRINGS = 4  # enough for 16 tensors
MANY = 1 << 22
PIECE = 1 << 26  # elements per step, so that temporaries fit
MOST_ENDLESS = 0.1  # largest share of NaN or infinity in an output of finite inputs
ULP = {"fp32": 2.0**-23, "tf32": 2.0**-10, "fp16": 2.0**-10, "bf16": 2.0**-7}
LOW = {"fp16": torch.float16, "bf16": torch.bfloat16}


def seed_of(*parts: object) -> int:
    """A 63-bit hash of all `parts`."""
    text = "\0".join(str(p) for p in parts).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def floating(tensor: Tensor) -> bool:
    return tensor.is_floating_point()


class Reference:
    """The model and inputs of one set, to run in one precision after another.

    `request` has `mutated` (the tensors that forward() mutates) and `returns`, as in core/task.h.
    """

    def __init__(self, model: torch.nn.Module, inputs: Inputs, file: str, seed: int, request: Json | None = None,
                 casts: bool = False) -> None:
        self.model, self.inputs, self.file, self.seed = model, inputs, file, seed
        self.request = request or {}
        self.as_made = False  # the family did not change the task file's inputs
        self.casts = casts  # the module names floating dtypes: keep_double.py
        self.integers = True  # float64 runs also widen casts of integers
        self.certain: decisions.Certain | None = None  # keeps decisions on inputs

    def run(self, change: Change, default: torch.dtype = torch.float32) -> list[Tensor]:
        """Runs a copy with change(name, tensor) applied to its floating tensors. Returns the outputs, then the final
        values of mutated tensors by name."""
        try:
            return self.run_once(change, default)
        except WorkerError:
            if default != torch.float64 or not self.casts or not self.integers:
                raise
            self.integers = False
            return self.run_once(change, default)

    def run_once(self, change: Change, default: torch.dtype) -> list[Tensor]:
        model, double, given = copy.deepcopy(self.model), default == torch.float64, {}

        def changed(name: str, t: Tensor) -> Tensor:  # half modes keep float8, because the module names it
            return t if float8.is_float8(t) and not double else change(name, t)

        def fresh(name: str, t: Tensor) -> Tensor:
            given[name] = changed(name, t.clone()) if floating(t) else t.clone()
            return given[name]

        with torch.no_grad():
            replace_state(model, changed)
            args, kwargs = self.inputs.map(fresh)
            seed_all(self.seed)
            if self.certain is not None:
                self.certain.start()
            with default_dtype(default), keeping_double(double and self.casts, self.integers) as kept, \
                    blame(self.file, "forward()", SIZES), self.certain or contextlib.nullcontext():
                out = model(*args, **kwargs)
            names = self.request.get("mutated", ())
            final = {**state_of(model, given), **given} if names else {}
        return [kept.unrounded(t) for t in results(out, self.request, {n: final[n] for n in names})]

    def rows(self, some: slice, count: int) -> Reference:
        """This reference with only the rows `some` of all inputs that have `count` leading rows."""
        args, kwargs = self.inputs.map(
            lambda _, t: t[some] if t.dim() and t.shape[0] == count else t
        )
        inputs = type(self.inputs)(kwargs if self.inputs.keyword else args, self.model, self.file)
        part = Reference(self.model, inputs, self.file, self.seed, self.request, self.casts)
        part.integers = self.integers
        return part


def replace_state(model: torch.nn.Module, change: Change) -> None:
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for key, t in table.items():
                if t is not None and floating(t):
                    t.data = change("", t.data)
    for _, owner, key, t in stray_tensors(model):
        if floating(t):
            setattr(owner, key, change("", t))


class Permitted:
    """The rounding that a request permits: the modes of outputs, and how to compute the native result."""

    def __init__(self, request: Json) -> None:
        self.mode = request["math_mode"]
        self.modes = request.get("modes") or [self.mode] * len(request["outputs"])
        self.tf32 = request.get("tf32_convolutions", False)
        # Emulates a mode that the user requested. Otherwise the module runs in its own dtypes.
        self.emulated = self.mode if request.get("math_mode_asked", True) else "fp32"

    def of(self, k: int) -> str:
        """The mode that decides the accuracy of output `k`."""
        return self.modes[k]

    def as_shipped(self) -> bool:
        """Whether a plain run of the module already gives the native result."""
        return self.emulated == "fp32" and not self.tf32

    def change(self) -> tuple[Change, torch.dtype]:
        """Returns (change of tensors, default dtype) of a native run."""
        if self.emulated == "tf32":
            return lambda _, t: to_tf32(t), torch.float32
        low = LOW.get(self.emulated)
        if low is None:
            return lambda _, t: t, torch.float32
        return lambda _, t: t.to(low), low


def native(reference: Reference, permitted: Permitted) -> list[Tensor]:
    """The outputs as PyTorch computes them on a GPU, except for the order of sums."""
    with orders.TF32Convolutions() if permitted.tf32 else contextlib.nullcontext():
        return reference.run(*permitted.change())


def in_order(reference: Reference, permitted: Permitted) -> list[Tensor] | None:
    """The outputs with sequential sums in the mode's arithmetic, or None if that is too much work."""
    with orders.Sequential(permitted.tf32) as summed:
        outputs = reference.run(*permitted.change())
    return outputs if summed.whole else None


def one_sign(pattern: int, bit: int | None, eps: float) -> Change:
    """A change that moves all elements of a tensor in one direction, which bit `bit` of the tensor's number decides."""
    numbers = itertools.count()

    def moved(_: str, t: Tensor) -> Tensor:
        up = pattern if bit is None else next(numbers) >> bit & 1
        return t.double() * (1 + eps if up else 1 - eps)

    return moved


def pieces(count: int) -> list[slice]:
    """Slices of at most PIECE elements."""
    return [slice(at, min(at + PIECE, count)) for at in range(0, count, PIECE)]


def signs(shape: Sequence[int], generator: Generator) -> Tensor:
    coins = torch.randint(0, 2, shape, generator=generator, dtype=torch.int8, device=generator.device)
    return 2.0 * coins.double() - 1


def fractions(shape: Sequence[int], generator: Generator) -> Tensor:
    """Uniform numbers from -1 to 1. Unlike random signs, no two of them are equal."""
    return 2 * draw.uniform(shape, generator).double() - 1


def moves(mode: str, generator: Generator, tensors: Iterator[int]) -> Iterator[tuple[Change, float]]:
    """Yields changes of the inputs, as (change(name, tensor), its size in roundings). `tensors` counts a run's tensors.

    Changes by one rounding use random signs once, random fractions DRAWS - 1 times, the same sign once, and
    opposite signs once for every two tensors: if two elements nearly cancel, equal signs would show no change.
    Some changes go in both directions. Below a ReLU's kink, truth and native result are zero, but an accurate
    sum of thousands of terms may end above the kink; one of two opposite changes ends there, too. In fp32 a
    single rounding is too small for that, so these changes have FAR roundings. In coarser modes FAR roundings
    would not be a small change, and one rounding suffices.
    """
    eps = ULP[mode]

    def noisy(size: float, numbers: Callable[[Sequence[int], Generator], Tensor]) -> Change:
        def change(_: str, t: Tensor) -> Tensor:
            next(tensors)
            t = t.double().contiguous()
            flat = t.view(-1)
            for part in pieces(flat.numel()):
                flat[part] *= 1 + size * eps * numbers(flat[part].shape, generator)
            return t

        return change

    runs = DRAWS
    state = generator.get_state()
    yield noisy(1, signs), 1
    if mode != "fp32":
        runs += 1
        generator.set_state(state)  # the same signs
        yield noisy(-1, signs), 1
    for _ in range(DRAWS - 1):
        yield noisy(1, fractions), 1
    if mode == "fp32":
        runs += 2
        state = generator.get_state()
        yield noisy(FAR, fractions), FAR
        generator.set_state(state)  # the same fractions
        yield noisy(-FAR, fractions), FAR
    yield one_sign(1, None, eps), 1
    many = next(tensors) // runs
    for bit in range(min(max(many - 1, 0).bit_length(), MOST_PAIRINGS)):
        yield one_sign(0, bit, eps), 1


def shifts(mode: str, generator: Generator, operators: int) -> Iterator[tuple[orders.Shifted, float]]:
    """Yields moves of products, convolutions and terms of sums, as (mode to run under, size in roundings). `operators`
    is how many of them a run moves.

    Just below a ReLU's kink the truth is zero, but a correct result may be positive. A change of the inputs moves
    such an element across the kink only by chance, and one element in a hundred million stays below it in all
    changes. If one operator moves, one of two opposite moves always crosses. If several operators move, their effects
    on an element may cancel in both moves, so two more moves have other signs.
    """
    far = FAR if mode == "fp32" else NEAR
    for _ in range(2 if operators > 1 else 1):
        state = generator.get_state()
        for size in (far, -far):
            generator.set_state(state)  # the same signs
            yield orders.Shifted(generator, size * ULP[mode], 2 / ULP[mode]), far


@contextlib.contextmanager
def deciding_as_before(reference: Reference) -> Iterator[None]:
    """Runs in this context decide about inputs as the reference does, although they move the inputs."""
    source = reference.request.get("source", "")
    if not facts_of(reference.request).levels and not any(text in source for text in EQUAL):
        yield
        return
    reference.certain = decisions.Certain()
    try:
        reference.run(lambda _, t: t.double(), torch.float64)
        yield
    finally:
        reference.certain = None


def by_inputs(reference: Reference, truth: list[Tensor], permitted: Permitted, generator: Generator,
              worst: Sequence[Tensor | None]) -> None:
    of = [permitted.of(k) for k in range(len(truth))]
    for mode in dict.fromkeys(of):
        for change, roundings in moves(mode, generator, itertools.count()):
            for k, moved in enumerate(reference.run(change, torch.float64)):
                into = worst[k]
                if into is not None and of[k] == mode:
                    keep_larger(into.view(-1), moved.reshape(-1), truth[k].reshape(-1),
                                roundings)


def sensitivity(reference: Reference, truth: list[Tensor], permitted: Permitted, generator: Generator,
                worst: Sequence[Tensor | None]) -> None:
    """Writes each output's largest change for one rounding of its inputs into `worst` (initially zeros; None for
    outputs that are not floating)."""
    with deciding_as_before(reference):
        by_inputs(reference, truth, permitted, generator, worst)
    of = [permitted.of(k) for k in range(len(truth))]
    with orders.RoundedAnew(generator) as anew:
        again = reference.run(lambda _, t: t.double(), torch.float64)
    for k, t in enumerate(again):
        into = worst[k]
        if into is not None:
            keep_larger(into.view(-1), t.reshape(-1), truth[k].reshape(-1), 1 / UNSURE)
    for mode in dict.fromkeys(of) if anew.shiftable else ():
        for shift, roundings in shifts(mode, generator, anew.shiftable):
            with shift:
                shifted = reference.run(lambda _, t: t.double(), torch.float64)
            for k, t in enumerate(shifted):
                into = worst[k]
                if into is not None and of[k] == mode:
                    keep_larger(into.view(-1), t.reshape(-1), truth[k].reshape(-1), roundings)


def order_matters(request: Json) -> bool:
    """Whether the class of a value may depend on the order of evaluation (infinite inputs, or products)."""
    return request["family"] == draw.SPECIAL or "prod" in request["source"]


def finite(t: Tensor) -> bool:
    return not floating(t) or all(
        bool(torch.isfinite(float8.widened(t.reshape(-1)[part])).all()) for part in pieces(t.numel()))


def order_marks(reference: Reference, permitted: Permitted, outputs: list[Tensor]) -> Iterator[Marks]:
    """Yields for each output where NaN is also correct, and where any value is; None if there are no such places.

    The order of evaluation decides whether an infinite term makes a sum infinite or NaN. It also decides the value
    of a product whose partial products leave the range.
    """
    with orders.ProductRange() as products:
        ranged = reference.run(*permitted.change())
    inputs = [t for _, t in reference.inputs.tensors()]
    endless = not all(map(finite, [*outputs, *inputs]))
    summed = outputs
    if endless:
        with by_definition(), orders.EndlessSums():
            summed = reference.run(*permitted.change())
    for own, with_nan, undefined in zip(outputs, summed, ranged):
        if not floating(own):
            yield None, None
            continue
        known = ~torch.isnan(own)
        yield (torch.isnan(with_nan) & known if endless else None,
               torch.isnan(undefined) & known if products.seen else None)


def put_marks(worst: Sequence[Tensor | None], marks: Iterator[Marks]) -> None:
    """Writes marks into sensitivities in the form of src/tensor/compare.h: the sign bit, and infinity."""
    for s, (nan_too, any_value) in zip(worst, marks):
        if s is None:
            continue
        if nan_too is not None:
            s.copy_(torch.where(nan_too, -s.abs(), s))
        if any_value is not None:
            s.masked_fill_(any_value, math.inf)


def ties(reference: Reference, permitted: Permitted) -> list[Tensor]:
    """For each output: where it depends on the order of equal elements, in float64 or natively."""
    marks: list[Tensor] = []
    for change in ((lambda _, t: t.double(), torch.float64), permitted.change()):
        with orders.Ties(True):
            first = reference.run(*change)
        with orders.Ties(False):
            last = reference.run(*change)
        differ = [~torch.isclose(float8.widened(a), float8.widened(b), 0, 0, equal_nan=True)
                  for a, b in zip(first, last)]
        marks = [a | b for a, b in zip(marks, differ)] if marks else differ
    return marks


def overflowing(reference: Reference, truth: list[Tensor]) -> list[Tensor]:
    """For each output: where the order of a sum that may overflow decides its class."""
    with truthfully(), Overflows(extremes.EDGE) as sums:
        marked = reference.run(lambda _, t: t.double(), torch.float64)
    if not sums.seen:
        return []
    return [torch.isnan(m) & ~torch.isnan(t) if floating(t) else torch.zeros_like(t, dtype=torch.bool)
            for m, t in zip(marked, truth)]


def steps(reference: Reference, outputs: Sequence[Tensor], generator: Generator) -> Iterator[tuple[int, Tensor]]:
    """Yields (k, the places in output k where a few float32 roundings of the inputs move an 8-bit integer by one).

    Quantisation rounds a quotient to an integer. If the quotient lies halfway between two integers, x / (amax / 127)
    and x * (127 / amax) may differ by one.
    """
    chosen = [k for k, t in enumerate(outputs) if t.dtype in (torch.int8, torch.uint8)]
    if not chosen:
        return
    truth = reference.run(lambda _, t: t.double(), torch.float64)
    for _ in range(2):
        state = generator.get_state()
        for size in (NEAR, -NEAR):
            generator.set_state(state)  # the same fractions
            moved = reference.run(lambda _, t: t.double() * (1 + size * ULP["fp32"] * fractions(t.shape, generator)),
                                  torch.float64)
            for k in chosen:
                yield k, (moved[k].double() - truth[k].double()).abs() == 1


def put_steps(worst: list[Tensor | None], places: Iterator[tuple[int, Tensor]]) -> None:
    """Marks these integers in the form of src/tensor/compare.h: with the sensitivity 1."""
    for k, near in places:
        s = worst[k]
        if s is None:
            s = worst[k] = torch.zeros(near.shape, dtype=torch.float64, device=near.device)
        s.masked_fill_(near, 1)


def has_ties(request: Json) -> bool:
    """Whether the module may order equal values."""
    return any(word in request["source"] for word in ("topk", "sort"))


def turns(reference: Reference, permitted: Permitted) -> Iterator[tuple[float, list[Tensor]]]:
    """Yields (size in roundings, float64 results whose uncertain decisions are turned); see decisions.py."""
    if not facts_of(reference.request).decides:
        return

    def exact() -> list[Tensor]:
        with truthfully():
            return reference.run(lambda _, t: t.double(), torch.float64)

    others = [lambda: native(reference, permitted), lambda: in_order(reference, permitted)]
    for mode in dict.fromkeys(permitted.modes):
        roundings = decisions.ROUNDINGS.get(mode, 1.0)
        for out in decisions.turned(exact, others, ULP[mode], roundings):
            yield roundings, out


def put_turns(worst: list[Tensor | None], truth: list[Tensor], found: Iterator[tuple[float, list[Tensor]]]) -> None:
    """Raises sensitivities to the change that an uncertain decision makes. If it changes the class of a value or an
    integer, any value passes."""
    for roundings, out in found:
        for k, (t, moved) in enumerate(zip(truth, out)):
            s = worst[k]
            if floating(t) and s is not None:
                keep_larger(s.view(-1), moved.reshape(-1), t.reshape(-1), roundings)
        put_unsure(worst, [unlike(t, moved) for t, moved in zip(truth, out)])


def unlike(t: Tensor, moved: Tensor) -> Tensor:
    """Where two values have different classes, or are different integers."""
    if not floating(t):
        return t != moved
    same = torch.isfinite(t) & torch.isfinite(moved) | (t == moved) | torch.isnan(t) & torch.isnan(moved)
    return ~same


def put_unsure(worst: list[Tensor | None], marks: list[Tensor]) -> None:
    """Marks these elements as uncertain, as src/tensor/compare.h reads them."""
    for k, mark in enumerate(marks):
        if not bool(mark.any()):
            continue
        s = worst[k]
        if s is None:
            s = worst[k] = torch.zeros(mark.shape, dtype=torch.float64, device=mark.device)
        s.masked_fill_(mark, math.inf)


def keep_larger(worst: Tensor, moved: Tensor, truth: Tensor, roundings: float) -> None:
    for part in pieces(worst.numel()):
        away = (moved[part].double() - truth[part].double()).abs()
        away = torch.nan_to_num(away, 0, 0, 0) / roundings
        worst[part] = torch.maximum(worst[part], away)


class Packer:
    """Packs tensors at aligned offsets into one memory file."""

    def __init__(self) -> None:
        self.slots: list[Json] = []
        self.tensors: list[Tensor] = []
        self.size = 0

    def add(self, name: str, part: str, tensor: Tensor, dtype: torch.dtype | None = None) -> None:
        tensor = tensor.detach().to(dtype or tensor.dtype).contiguous()
        count = tensor.numel() * tensor.element_size()
        self.slots.append({
            "name": name, "part": part, "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape), "offset": self.size, "bytes": count,
        })
        self.tensors.append(tensor)
        self.size = (self.size + count + ALIGN - 1) // ALIGN * ALIGN

    def memory(self) -> tuple[int, int]:
        size = max(self.size, ALIGN)
        fd = os.memfd_create("tensors", os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as window:
            for slot, t in zip(self.slots, self.tensors):
                if slot["bytes"]:
                    target = torch.frombuffer(window, dtype=torch.uint8, count=slot["bytes"],
                                              offset=slot["offset"])
                    target.copy_(t.reshape(-1).view(torch.uint8))
                    del target
        return fd, size


@contextlib.contextmanager
def threads_for(reference: Reference) -> Iterator[None]:
    """Uses one thread for small tensors, because on a busy machine threads would wait longer than they work."""
    before = torch.get_num_threads()
    if sum(t.numel() for _, t in reference.inputs.tensors()) < MANY:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def prepare(source: Source, request: Json, seed: int, domain: draw.Domain,
            device: torch.device | None = None) -> tuple[Reference, Generator]:
    """Makes the reference for a set, with fresh parameters and inputs of the family."""
    seed_all(seed_of(seed, "model"))
    model, inputs = build(source.run(request["constants"]), source.file)
    model.train(request["train_mode"])
    generator = torch.Generator(device or "cpu").manual_seed(seed_of(seed, "values"))
    move_state(model, device)
    for p in model.parameters():
        p.requires_grad_(False)
    written = set(request.get("mutated", ()))
    state = state_of(model, {n for n, _ in inputs.tensors()})
    draw.redraw(model, generator, [t for n, t in state.items() if n in written])
    seed_all(seed_of(seed, "inputs"))
    family = request["family"]
    if family == "made":  # draws again, so that the numbers that Model() drew do not matter
        module = sys.modules["cutegen_task"]
        with blame(source.file, "get_inputs()", SIZES):
            inputs = type(inputs)(module.get_inputs(), model, source.file)
    nan = all(d.startswith(("f", "bf")) for d in request["dtypes"])  # indices of NaN are undefined
    made = {n: draw.initial(t, generator) if n in written else t.detach()
            for n, t in on_device(inputs, device)}
    peaks = facts_of(request).most > CHOSEN
    if family == draw.RANGED:
        wanted = request["values"]
        changed = {n: draw.ranged(t, wanted[n], generator) if n in wanted else t for n, t in made.items()}
    else:
        changed = {n: draw.input_values(t, family, generator, domain, nan, peaks=peaks) for n, t in made.items()}
        if family == draw.OUTLIERS:
            draw.plant_levels(made, changed, facts_of(request).levels, state, generator)
    as_made = family != "made" and all(changed[n] is t for n, t in made.items())
    for name, limit in facts_of(request).limits.items():
        changed[name] = limit.keep(changed[name])
    args, kwargs = inputs.map(lambda n, t: changed[n])
    inputs = type(inputs)(kwargs if inputs.keyword else args, model, source.file)
    forward = seed_of(seed, "forward")
    reference = Reference(model, inputs, source.file, forward, request, facts_of(request).casts)
    reference.as_made = as_made
    return reference, generator


def on_device(inputs: Inputs, device: torch.device | None) -> Iterator[tuple[str, Tensor]]:
    for name, t in inputs.tensors():
        yield name, t if device is None else t.to(device)


def make_set(request: Json) -> Answer:
    """Returns (reply, memory file) for {source, file, constants, train_mode, math_mode, family, ...}."""
    if request["family"] not in (*draw.FAMILIES, draw.RANGED):
        raise WorkerError(f"unknown input family '{request['family']}'", "",
                          "one of " + ", ".join(draw.FAMILIES))
    seed = seed_of(request["seed"], request["family"], request["shape"])
    source = Source(request["source"], request["file"])
    with clean_state(source.file), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for domain in draw.domains(request["family"], facts_of(request), request):
            reference, generator = prepare(source, request, seed, domain)
            with threads_for(reference):
                plain = in_domain(reference, request["family"], domain)
                if plain is not None:
                    reply, fd = pack(reference, generator, request, plain)
                    return reply | ({"as_made": True} if reference.as_made else {}), fd
    if request["family"] == draw.RANGED:
        raise WorkerError("the reference does not work on the values of the proposed test", request["shape"],
                          "propose values on which its results are finite")
    raise AssertionError("in_domain() accepts or refuses the last domain")


def in_domain(reference: Reference, family: str, domain: draw.Domain) -> list[Tensor] | None:
    """The native outputs, or None if the module does not work on these values."""
    last = domain == draw.RANGE
    try:
        outputs = reference.run(lambda _, t: t)
    except WorkerError:
        if last:
            raise
        return None
    if last or family == draw.SPECIAL:
        return outputs
    for t in outputs:
        if not floating(t) or t.numel() == 0:
            continue
        if (~torch.isfinite(float8.widened(t))).double().mean() > MOST_ENDLESS:
            return None
    return outputs


def pack(reference: Reference, generator: Generator, request: Json, plain: list[Tensor]) -> Answer:
    packer, permitted = Packer(), Permitted(request)
    notes: list[str] = []
    for name, t in reference.inputs.tensors():
        packer.add(name, "value", t)
    taken = {name for name, _ in reference.inputs.tensors()}
    for name, _, t in state_tensors(reference.model):
        packer.add("self." + name if name in taken else name, "value", t)
    names, dtypes = request["outputs"], request["dtypes"]
    if len(names) != len(plain):
        raise WorkerError(f"forward() gave {len(plain)} results; {len(names)} were described",
                          request["file"], "make the number of outputs constant")
    own = plain if permitted.as_shipped() else native(reference, permitted)
    for name, dtype, t in zip(names, dtypes, own):
        wanted = next(d for d, n in DTYPES.items() if n == dtype)
        packer.add(name, "native", t, wanted)
    summed = in_order(reference, permitted)
    for name, t in zip(names, summed or []):
        if floating(t):
            packer.add(name, "sequential", t, torch.float64)
    truths(packer, notes, reference, generator, request, permitted, own)
    if request["family"] == draw.EXTREMES:
        extremes.settle_packed(packer.slots, packer.tensors)
    fd, size = packer.memory()
    return {"slots": packer.slots, "bytes": size, "notes": notes}, fd


def by_definition() -> Any:
    """Computes attention as products and a softmax: fused kernels differ if a row's scores are all -infinity."""
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)


@contextlib.contextmanager
def truthfully() -> Iterator[None]:
    with by_definition(), orders.Accurate():
        yield


def truths(packer: Packer, notes: list[str], reference: Reference, generator: Generator, request: Json,
           permitted: Permitted, own: list[Tensor]) -> None:
    names = request["outputs"]
    try:
        with truthfully():
            truth = reference.run(lambda _, t: t.double(), torch.float64)
            moved = [torch.zeros_like(t, dtype=torch.float64, memory_format=torch.contiguous_format)
                     if floating(t) else None for t in truth]
            sensitivity(reference, truth, permitted, generator, moved)
            put_steps(moved, steps(reference, own, generator))
        if order_matters(request) or not all(map(finite, own)):
            put_marks(moved, order_marks(reference, permitted, own))
        if request["family"] == draw.EXTREMES:
            put_unsure(moved, overflowing(reference, truth))
        if has_ties(request):
            put_unsure(moved, ties(reference, permitted))
        if facts_of(request).counts:
            for change in ((lambda _, t: t.double(), torch.float64), permitted.change()):
                with contextlib.suppress(WorkerError):  # an undefined index may be too large
                    put_unsure(moved, casts.undefined(functools.partial(reference.run, *change)))
        put_turns(moved, truth, turns(reference, permitted))
    except WorkerError as error:
        notes.append("float64 does not run: " + first_line(error.message))
        truth = reference.run(lambda _, t: t)
        moved = [None] * len(truth)
    for name, t, s in zip(names, truth, moved):
        if floating(t) and t.dtype != torch.float64 and s is not None:
            notes.append(f"output '{name}' is {t.dtype} even for float64 inputs")
        packer.add(name, "truth", t, torch.float64)
        if s is not None:
            packer.add(name, "sensitivity", s, torch.float64)
