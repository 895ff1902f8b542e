# SPDX-License-Identifier: Apache-2.0
"""An excerpt of a large shape: a few of its rows (and columns), and their truth.

The tensors of many official shapes do not fit into this process, and their float64 truth takes too long.
Most tasks treat some axes as a batch: each index along such an axis gives its own part of the output.
An excerpt has `count` of `of` indices along these axes. If inputs repeat the excerpt's inputs, the output
repeats the excerpt's output.

plan() finds the axes on meta tensors. Then it draws values, and keeps the axes whose indices are independent:
permuted indices must give permuted results, and fewer indices must give a part of the results. make() repeats
this check on its own values.
"""

from __future__ import annotations

import copy
import functools
import time
import warnings
from collections.abc import Callable, Collection, Iterator

import torch
from torch import Generator, Tensor

from . import draw, values
from .errors import WorkerError
from .names import state_tensors
from .source import Source, clean_state
from .trace import Trace
from .wire import Answer, Json

Constants = dict[str, int]
Cuts = dict[str, dict[int, int]]  # tensor -> axis -> count

WANT_ELEMENTS, WANT_FLOPS = 1 << 18, 5e7  # stop cutting at this size
MOST_ELEMENTS, MOST_FLOPS = 1 << 23, 2e9  # limits of an excerpt
MOST_DRAWN = 1 << 26  # elements drawn before cutting
LEAST = 3
PRIMES = [3, 5, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 4093, 8191, 16381, 65521, 262139]
SAME = 1e-6  # relative to an output's scale; float64 sums in another order differ by less
MOST_SECONDS = 0.5  # for one float64 run; a set takes about fifteen runs
MOST_PLACES = 24  # constants or tensors of one size to try
DRAWS = 4  # attempts to draw values whose results differ from index to index
DIFFERENT = 0.05  # share of the results that must change when indices change places


class CutTrace(Trace):
    """A trace on cut tensors. `cuts`: {name: {axis: count}}."""

    def __init__(self, source: Source, constants: Constants, train: bool, cuts: Cuts) -> None:
        self.cuts = cuts
        super().__init__(source, constants, train)

    def add(self, name: str, role: str, tensor: Tensor) -> None:
        for axis, count in self.cuts.get(name, {}).items():
            part = tensor.narrow(axis, 0, min(count, tensor.shape[axis])).clone()
            if role == "input":
                tensor = part
            else:
                tensor.data = part
        super().add(name, role, tensor)


class Planner:
    """`dependent`: axes of the results that must stay whole."""

    def __init__(self, source: Source, train: bool, constants: Constants, dependent: Collection[int]) -> None:
        self.source, self.train, self.dependent = source, train, dependent
        self.constants = constants
        self.whole = {**source.constants, **constants}  # before any cut
        self.cut_names: set[str] = set()
        self.cuts: Cuts = {}
        self.axes: list[Json] = []
        self.cut_axes: list[int] = []  # axis of the results, for each of `axes`
        self.official = self.now = CutTrace(source, constants, train, {})

    def trace(self, constants: Constants, cuts: Cuts) -> CutTrace | None:
        try:
            found = CutTrace(self.source, constants, self.train, cuts)
        except (WorkerError, RuntimeError, IndexError):
            return None
        return found if self.official.alike(found) else None

    def small(self, elements: int, flops: float) -> bool:
        return self.now.elements() <= elements and self.now.flops <= flops

    def run(self) -> None:
        rank = max(t.dim() for _, t in self.leaders(self.official))
        for axis in range(rank):
            if self.small(WANT_ELEMENTS, WANT_FLOPS):
                break
            if axis not in self.dependent:
                self.cut(axis)
        if self.small(MOST_ELEMENTS, MOST_FLOPS):
            return
        what = "its smallest excerpt" if self.axes else "no axis of its output can be cut: it"
        raise WorkerError(f"{what} has {self.now.elements()} elements and {self.now.flops:.2g} FLOPs",
                          self.source.file, "", "unsupported")

    @staticmethod
    def leaders(trace: CutTrace) -> list[tuple[str, Tensor]]:
        """The outputs, or the mutated tensors of a module without outputs."""
        return trace.outputs or sorted(trace.final.items())

    def cut(self, axis: int) -> None:
        """Reduces one axis of the leading results to fewer indices, if possible."""
        sizes = {t.shape[axis] if axis < t.dim() else 0 for _, t in self.leaders(self.now)}
        of = sizes.pop()
        if sizes or of < 2 * LEAST:
            return
        for change in self.ways(of):
            found = self.trace(*change(LEAST))
            dims = None if found is None else self.dims(found, axis, of, LEAST)
            if found is None or not dims:
                continue
            count = self.most(found, of)
            if count != LEAST:
                found = self.trace(*change(count))
                dims = None if found is None else self.dims(found, axis, of, count)
            if found is not None and dims:
                self.constants, self.cuts = change(count)
                self.cut_names = {n for n, v in self.constants.items() if v != self.whole[n]}
                self.now = found
                self.axes.append({"of": of, "count": count, "dims": dims})
                self.cut_axes.append(axis)
                return

    def ways(self, of: int) -> Iterator[Callable[[int], tuple[Constants, Cuts]]]:
        """Functions count -> (constants, cuts), which change constants of this value or else cut tensors."""
        names = [n for n, v in self.whole.items() if v == of and n not in self.cut_names]
        names = names[:MOST_PLACES]
        for some in [[n] for n in names] + ([names] if len(names) > 1 else []):
            yield functools.partial(self.with_constants, some)
        if self.official.elements() > MOST_DRAWN:
            return
        held = [(n, d) for n, (_, t) in self.now.tensors.items() for d in range(t.dim())
                if t.shape[d] == of][:MOST_PLACES]
        leading = [(n, d) for n, d in held if d == 0]
        for places in [[place] for place in held] + ([leading] if len(leading) > 1 else []):
            yield functools.partial(self.with_cuts, places)

    def with_constants(self, names: list[str], count: int) -> tuple[Constants, Cuts]:
        return {**self.constants, **dict.fromkeys(names, count)}, self.cuts

    def with_cuts(self, places: list[tuple[str, int]], count: int) -> tuple[Constants, Cuts]:
        return self.constants, self.more_cuts(places, count)

    def more_cuts(self, places: list[tuple[str, int]], count: int) -> Cuts:
        cuts = {n: dict(c) for n, c in self.cuts.items()}
        for name, axis in places:
            cuts.setdefault(name, {})[axis] = count
        return cuts

    def dims(self, found: CutTrace, axis: int, of: int, count: int) -> dict[str, int] | None:
        """Returns {tensor: cut axis}, or None if anything else changed or a result is not cut."""
        before, after, dims = self.now.shapes(), found.shapes(), {}
        if before.keys() != after.keys():
            return None
        for name, shape in before.items():
            changed = [d for d, (a, b) in enumerate(zip(shape, after[name])) if a != b]
            if len(shape) != len(after[name]) or len(changed) > 1:
                return None
            for d in changed:
                if (shape[d], after[name][d]) != (of, count):
                    return None
                dims[name] = d
        if any(dims.get(n) != axis for n, _ in self.leaders(self.now)):
            return None
        return dims if all(n in dims for _, n, _ in self.now.results()) else None

    def most(self, least: CutTrace, of: int) -> int:
        """The largest count within the wanted work. Work grows in proportion to the count."""
        best = LEAST
        for count in PRIMES:
            share = (count - LEAST) / (of - LEAST)
            elements = least.elements() + (self.now.elements() - least.elements()) * share
            flops = least.flops + (self.now.flops - least.flops) * share
            if 2 * count <= of and elements <= WANT_ELEMENTS and flops <= WANT_FLOPS:
                best = count
        return best


def plan(request: Json) -> Json:
    """Plans an excerpt of the shape in the request: constants, axes and the resulting shapes."""
    source = Source(request["source"], request["file"])
    dependent: set[int] = set()
    while True:
        planner = Planner(source, request["train_mode"], request["constants"], dependent)
        planner.run()
        found = {
            "constants": planner.constants,
            "cuts": [[n, d, c] for n, axes in planner.cuts.items() for d, c in axes.items()],
            "axes": planner.axes,
            "flops": planner.now.flops,
        }
        at = dependent_axis(source, {**request, **found})
        if at is None:
            return found
        dependent.add(planner.cut_axes[at])


def dependent_axis(source: Source, request: Json) -> int | None:
    """The number of a cut axis whose indices affect one another, or None."""
    if not request["axes"]:
        return None
    with clean_state(source.file), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reference, generator, _ = drawn(request, source, 0)
        except WorkerError:  # for example, an index that is beyond the axis
            return len(request["axes"]) - 1
        with values.threads_for(reference):
            start = time.process_time()
            whole = in_double(reference)
            if whole is None or time.process_time() - start > MOST_SECONDS:  # make() reports both
                return None
            for at, axis in enumerate(request["axes"]):
                if not independent(reference, axis, request["outputs"], whole, generator):
                    return at
    return None


def make(request: Json) -> Answer:
    """Returns (reply, memory file) like values.make_set, for an excerpt from plan()."""
    source = Source(request["source"], request["file"])
    with clean_state(source.file), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for draws_left in reversed(range(DRAWS)):
            reference, generator, plain = drawn(request, source, draws_left)
            with values.threads_for(reference):
                whole = exact_results(reference, request, generator)
                # ReLU of negative values gives equal rows, so a program could mix them up unnoticed.
                if not draws_left or whole is None or rows_differ(whole, request):
                    return values.pack(reference, generator, request, plain)
    raise AssertionError("the last draw is packed")


def drawn(request: Json, source: Source, number: int) -> tuple[values.Reference, Generator, list[Tensor]]:
    """Draws the excerpt's values once. Returns reference, generator and the module's plain results."""
    family = request["family"]
    seed = values.seed_of(request["seed"], family, request["shape"], number)
    for domain in draw.DOMAINS if family != "made" else (draw.RANGE,):
        reference, generator = values.prepare(source, request, seed, domain)
        for name, axis, count in request["cuts"]:
            reference = chosen(reference, {name: axis}, torch.arange(count))
        with values.threads_for(reference):
            plain = values.in_domain(reference, family, domain)
        if plain is not None:
            return reference, generator, plain
    raise AssertionError("in_domain() accepts or refuses the last domain")


def chosen(reference: values.Reference, dims: dict[str, int], index: Tensor) -> values.Reference:
    """The reference with these indices along one axis of the tensors in `dims`."""
    model, inputs = copy.deepcopy(reference.model), reference.inputs
    taken = {name for name, _ in inputs.tensors()}
    for name, _, t in state_tensors(model):
        name = "self." + name if name in taken else name
        if name in dims:
            t.data = t.data.index_select(dims[name], index)
    args, kwargs = inputs.map(lambda n, t: t.index_select(dims[n], index) if n in dims else t)
    inputs = type(inputs)(kwargs if inputs.keyword else args, model, reference.file)
    return values.Reference(model, inputs, reference.file, reference.seed, reference.request, reference.casts)


def exact(_: str, t: Tensor) -> Tensor:
    return t.double()


def exact_results(reference: values.Reference, request: Json, generator: Generator) -> list[Tensor] | None:
    """The results in float64, or None if the module does not run in float64 (values.pack reports that).

    Raises an error if an index of an axis affects the output's parts of other indices.
    """
    start = time.process_time()
    whole = in_double(reference)
    if whole is None:
        return None
    taken = time.process_time() - start
    if taken > MOST_SECONDS:
        raise WorkerError(f"a float64 run of its smallest excerpt takes {taken:.1f} s of processor "
                          "time", reference.file, "", "unsupported")
    for axis in request["axes"]:
        if not independent(reference, axis, request["outputs"], whole, generator):
            raise dependent(reference.file)
    return whole


def in_double(reference: values.Reference) -> list[Tensor] | None:
    """The results in float64, or None if the module does not run in float64."""
    try:
        return comparable(reference.run(exact, torch.float64))
    except WorkerError:
        return None


def independent(reference: values.Reference, axis: Json, outputs: list[str], whole: list[Tensor],
                generator: Generator) -> bool:
    """Whether other indices of an axis give the same indices of the results `whole`."""
    count, dims = axis["count"], axis["dims"]
    order = torch.randperm(count, generator=generator)
    for index in (order, order[: count // 2 + 1].sort().values):
        part = in_double(chosen(reference, dims, index))
        if part is None:
            return False
        for name, t, of_all in zip(outputs, part, whole):
            wanted = of_all.index_select(dims[name], index)
            if t.shape != wanted.shape or not same(t, wanted):
                return False
    return True


def comparable(results: list[Tensor]) -> list[Tensor]:
    """The results with 8-bit floats as float32, because PyTorch compares no 8-bit floats."""
    return [t.float() if t.is_floating_point() and t.element_size() == 1 else t for t in results]


def rows_differ(whole: list[Tensor], request: Json) -> bool:
    """Whether results change when indices along each axis change places."""
    for axis in request["axes"]:
        for name, t in zip(request["outputs"], whole):
            moved = t.roll(1, axis["dims"][name])
            if t.numel() and float((moved != t).double().mean()) < DIFFERENT:
                return False
    return True


def dependent(file: str) -> WorkerError:
    return WorkerError("no part of its output depends on a part of its inputs alone", file, "",
                       "unsupported")


def same(a: Tensor, b: Tensor) -> bool:
    if not a.is_floating_point():
        return torch.equal(a, b)
    finite = torch.isfinite(b)
    if not torch.equal(finite, torch.isfinite(a)):
        return False
    a, b = a[finite], b[finite]
    return not b.numel() or bool((a - b).abs().max() <= SAME * b.abs().max())
