# SPDX-License-Identifier: Apache-2.0
"""Small and odd shapes: the same program at sizes that the simulator can afford.

The search lowers all constants together: every constant above a cap becomes the cap. It guesses the cap from the
official shapes and lowers it until the work fits. A shape counts only if the module still builds and runs, also on
real tensors (real_run.py), and its calls differ only in sizes (Trace.alike). Odd shapes replace constants by
primes, all at once or else one after another. If sizes depend on one another, the search scales all of them in
proportion. If the module fixes sizes, only the other sizes become small, and the work limit is higher. The number
of runs is limited, because each takes milliseconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from math import gcd, lcm, prod

from . import lengths, real_run
from .errors import WorkerError
from .source import Source
from .trace import Trace
from .wire import Json

Constants = dict[str, int]
Found = tuple[Constants, Trace]
Key = tuple[tuple[str, int], ...]

CAPS = [512, 256, 128, 64, 48, 32, 24, 16, 12, 8, 6, 4]
MOST_FLOPS = 5e7
FROZEN_ELEMENTS = 1 << 19  # if some size cannot shrink
MOST_STEPS = 1 << 21  # of a convolution: kernels round its channels up, so few FLOPs may be much work
FIXED_ELEMENTS = 120_000_000  # if the module fixes sizes, as in nn.Linear(8192, 14336)
FIXED_FLOPS, LOWEST_FIXED_FLOPS = 4e8, 7.2e8  # for the sizes LOW_FIXED, and LOWEST_FIXED
ONE_ODD_ELEMENTS = 1 << 23  # from here on one odd shape is enough, because the truth takes seconds
MOST_RUNS = 40
MOST_SECONDS = 3.0
MOST_REAL_SECONDS = 8.0  # in real runs of one module
LEAST = 8  # smaller constants are probably axes, kernel sizes or group counts
MOST_OF_BLOCKS = 3  # so many blocks of an axis that a convolution divides must remain possible
INNER = 1031  # a prime over 1,024
BATCH = re.compile(r"batch|^(bs|n|b)$", re.IGNORECASE)
FIXED = re.compile(r"kernel|strid|pad|dilat|axis|(?<![a-z])eps|seed|num_layers|^rates$", re.IGNORECASE)
GROUPS = re.compile(r"(?<![a-z])groups?(?![a-z])", re.IGNORECASE)
PRIMES = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 61, 67, 71, 79, 89, 97, 101, 113,
          127, 131, 149, 167, 191, 211, 251, 257, 293, 331, 383, 449, 509, 521]
MULTIPLES = [6, 12, 24, 48]
# Names of shapes that cutegen makes: those of shapes(), of describe.case_at(), and of proposed tests
# (src/eval/rungs/derive_shapes.cpp).
OWN_NAMES = {"official", "small", "odd1", "odd2", *(f"long{i + 1}" for i in range(lengths.MOST_LONG))}
OWN_PREFIXES = ("derived ", "proposed ")
LOW_FIXED, LOWEST_FIXED = [2, 8, 12, 32], [2, 3]


def is_own_name(shape: str) -> bool:
    """Whether cutegen may make a shape of this name."""
    return shape in OWN_NAMES or shape.startswith(OWN_PREFIXES)


def is_batch(name: str) -> bool:
    return ".lead" in name or BATCH.search(name.split(".")[0]) is not None


def goes_first(name: str) -> bool:
    return is_batch(name) or "head" in name


def eligible(name: str, value: int) -> bool:
    if FIXED.search(name):
        return False
    return value >= LEAST or (value >= 2 and is_batch(name))


def varying(source: Source) -> Constants:
    """The sizes that may vary, with their official values; if there are none, the literals that begin a shape."""
    sizes = {n: v for n, v in source.constants.items()
             if eligible(n, v) and not FIXED.search(source.parameters.get(n, ""))}
    return {n: v for n, v in sizes.items() if ".lead" not in n} or sizes


def same_program(official: Trace, trace: Trace) -> bool:
    return official.alike(trace) and (official.hollow() or not trace.hollow())


class Shrinker:
    def __init__(self, source: Source, official: Trace, train: bool, most_elements: int) -> None:
        self.source, self.official, self.train = source, official, train
        self.most_elements, self.most_flops = most_elements, MOST_FLOPS
        self.official_sizes = source.constants | source.model_sizes
        self.sizes = varying(source)
        self.leads = {n: v for n, v in source.constants.items() if ".lead" in n}
        # Channels with these values stay multiples of `groups`: {value: least number for each group}.
        self.groups, self.grouped = 1, dict[int, int]()
        self.in_step = False  # equal sizes and literals in the class Model change together
        # Sizes with these values stay multiples of a number: {value: number}.
        self.blocks = {v: n for v, n in official.blocks().items() if n <= v // MOST_OF_BLOCKS}
        self.cache: dict[Key, Trace | None] = {}
        self.works = set[Key]()  # keys of the cache whose shapes run on real tensors
        self.real_seconds = 0.0
        self.renew()
        self.reason = "no module-level integer constant decides a size"

    def attempt(self, constants: Constants) -> Trace | None:
        """The trace with these constants, or None if it is another program, or if it fits and fails on real tensors."""
        key = tuple(sorted(constants.items()))
        if key not in self.cache:
            self.cache[key] = self.run(constants)
        trace = self.cache[key]
        if trace is not None and key not in self.works and self.fits(trace):
            if not self.runs_on_real_tensors(constants, trace):
                self.cache[key] = None
                return None
            self.works.add(key)
        return trace

    def run(self, constants: Constants) -> Trace | None:
        if self.runs >= self.most_runs or time.process_time() - self.start > MOST_SECONDS:
            self.reason = "there was no time left to look for smaller sizes"
            return None
        self.runs += 1
        try:
            trace = Trace(self.source, constants, self.train)
        except WorkerError as error:
            self.reason = error.message
            return None
        if not self.official.alike(trace):
            self.reason = "with another size the module computes something else"
            return None
        if trace.hollow() and not self.official.hollow():
            self.reason = "with another size the module computes nothing"
            return None
        return trace

    def runs_on_real_tensors(self, constants: Constants, trace: Trace) -> bool:
        if self.real_seconds > MOST_REAL_SECONDS:
            self.reason = "there was no time left to try smaller sizes on real tensors"
            return False
        start = time.process_time()
        why = real_run.failure(self.source, constants, trace, self.train)
        spent = time.process_time() - start
        self.real_seconds += spent
        self.start += spent  # the time for traces remains
        self.reason = why or self.reason
        return why is None

    def renew(self, runs: int = MOST_RUNS) -> None:
        """Permits more runs and seconds for another search."""
        self.runs, self.most_runs, self.start = 0, runs, time.process_time()

    def fits(self, trace: Trace) -> bool:
        return (trace.elements() <= self.most_elements and trace.flops <= self.most_flops
                and trace.steps() <= MOST_STEPS)

    def guess(self, constants: Constants) -> int:
        """The expected number of elements over all tensors, if each size follows its constant."""
        total = 0
        for shape in self.official.shapes().values():
            total += prod(self.follow(d, constants) for d in shape)
        return total

    def follow(self, size: int, constants: Constants) -> int:
        """The expected value of a size, in proportion to the constant nearest to it."""
        near = min(self.sizes.items(), key=lambda item: max(item[1], size) / max(1, min(item[1], size)))
        if not size / 4 <= near[1] <= size * 4:
            return size
        return max(1, size * constants.get(near[0], near[1]) // near[1])

    def capped(self, cap: int) -> Constants:
        """Replaces every constant above the cap by the cap, and batches by smaller values."""
        wanted = {}
        for name, value in self.sizes.items():
            most = max(2, cap // 4) if is_batch(name) and cap <= 16 else cap
            if value in self.grouped:
                most = max(most // self.groups, self.grouped[value]) * self.groups
            if value > most:
                wanted[name] = self.in_blocks(name, most, 2)
        return wanted

    def in_blocks(self, name: str, size: int, least: int = 1) -> int:
        """The size; if a convolution divides the axis into blocks, only whole blocks, and at least `least`."""
        block = self.blocks.get(self.official_sizes[name])
        return size if block is None else max(size // block, least) * block

    def small(self) -> Found | None:
        """(constants, trace) under the work limit, or None."""
        if self.fits(self.official):
            return {}, self.official
        if not self.sizes:
            return None
        found = self.by_caps()
        if found is None and self.blocks:
            blocks, self.blocks = self.blocks, {}
            found = self.by_caps()
            if found is None:
                self.blocks = blocks
        if found is not None:
            return found
        return (self.in_proportion(reversed(range(1, 9))) or self.one_by_one() or self.where_fixed()
                or self.with_one_value_fixed() or self.with_model())

    def by_caps(self) -> Found | None:
        """The first shape under the work limit whose sizes are at most a cap, or None."""
        start = 0
        while start < len(CAPS) - 3 and self.guess(self.capped(CAPS[start])) > self.most_elements:
            start += 1
        failed = 0
        for cap in CAPS[start:]:
            constants = self.capped(cap)
            trace = self.attempt(constants)
            if trace is not None and self.fits(trace):
                return constants, trace
            failed += trace is None
            if failed >= 2:
                break
        self.reason = "no size makes the module small enough" if failed < 2 else self.reason
        return None

    def keeping_groups(self) -> Found | None:
        """Like small(), but first tries the official numbers of groups. No tensor shows them, so a plan takes them from
        the module's attributes, which works only if all shapes have the same number."""
        every, limits = self.sizes, (self.most_elements, self.most_flops)
        kept = {n: v for n, v in every.items()
                if GROUPS.search(n) or GROUPS.search(self.source.parameters.get(n, ""))}
        if kept:
            self.sizes = {n: v for n, v in every.items() if n not in kept}
            self.groups = lcm(*kept.values())
            self.grouped = {c: n for c, n in self.official.channels().items() if c % self.groups == 0}
            found = self.small()
            if found is not None:
                return found
            self.sizes, (self.most_elements, self.most_flops) = every, limits
            self.grouped = {}
            self.renew()
        return self.small()

    def where_fixed(self) -> Found | None:
        """For modules that fix sizes: makes the other sizes small, with a higher work limit.

        After this, only those other sizes vary.
        """
        self.renew()
        self.most_elements = FIXED_ELEMENTS
        every = self.sizes
        for lows, self.most_flops in ((LOW_FIXED, FIXED_FLOPS), (LOWEST_FIXED, LOWEST_FIXED_FLOPS)):
            constants = self.lowered(every, lows)
            trace = self.attempt(constants) if constants else None
            if trace is not None and self.fits(trace):
                self.sizes = {n: self.official_sizes[n] for n in constants}
                self.in_step = any(n in self.source.model_sizes for n in constants)
                self.most_flops = max(FIXED_FLOPS, trace.flops)
                return constants, trace
        return None

    def with_one_value_fixed(self) -> Found | None:
        """For modules that fix one size, such as the width of attention heads that decides a constant scale, and whose
        other sizes must change together, as sequence and mask do: caps all constants with other values.

        After this, only those vary.
        """
        self.most_flops = MOST_FLOPS
        every = self.sizes
        for value in sorted(set(every.values())):
            self.renew()
            self.most_elements = FROZEN_ELEMENTS
            self.sizes = {n: v for n, v in every.items() if v != value}
            fits = None
            for cap in reversed(CAPS[-6:]):  # low caps are fast
                constants = self.capped(cap)
                trace = self.attempt(constants) if constants else None
                if trace is None or not self.fits(trace):
                    break
                fits = constants, trace
            if fits is not None:
                return fits
        self.sizes = every
        return None

    def with_model(self) -> Found | None:
        """For modules that fix all sizes, as nn.Linear(4096, 1024) does for torch.randn(1, 4096): the literals in the
        class Model vary, too. In this shape, equal literals stay equal."""
        if not self.source.model_sizes:
            return None
        self.renew()
        usual, self.sizes = self.sizes, self.sizes | self.source.model_sizes
        for cap in CAPS[2:]:
            constants = self.capped(cap)
            trace = self.attempt(constants)
            if trace is not None and self.fits(trace):
                return constants, trace
        self.sizes = usual
        return None

    def lowered(self, every: Constants, lows: list[int]) -> Constants:
        """Each size that may vary, with the first of `lows` that the module accepts. If several tensors must have a
        size, their literals are lowered together."""
        constants: Constants = {}
        for sizes in (every, {n: v for n, v in self.leads.items() if n not in every}):
            for name, value in sizes.items():
                if name in constants:
                    continue
                for names in self.together(name, sizes):
                    low = next((low for low in self.lows(name, names, lows)
                                if self.attempt({**constants, **dict.fromkeys(names, low)}) is not None), None)
                    if low is not None:
                        constants.update(dict.fromkeys(names, low))
                        break
            if constants:
                break
        return constants

    def lows(self, name: str, names: list[str], lows: list[int]) -> Iterator[int]:
        """Yields the values in `lows` that a size may have. Only a batch may be as small as the first value."""
        value = self.official_sizes[name]
        leads = self.position(name, 0) == 0 and any(n in self.source.model_sizes for n in names)
        batch = is_batch(name) or value <= LEAST or leads
        yield from (n for n in (self.in_blocks(name, low, 2) for low in (lows if batch else lows[1:])) if n < value)

    def together(self, name: str, sizes: Constants) -> Iterator[list[str]]:
        """Yields this size alone, then the equal literals of get_inputs() at the same place of their shapes, from
        the front and from the end, and at last all equal sizes and literals in the class Model, as in `x.view(8, 1024,
        12, 64)`."""
        yield [name]
        known = [[name]]
        for side in (0, 1):
            at = self.position(name, side)
            names = [n for n, v in sizes.items() if v == sizes[name] and self.position(n, side) == at]
            if at is not None and names not in known:
                known.append(names)
                yield names
        model = [n for n, v in self.source.model_sizes.items() if v == sizes[name] and not n.startswith("__init__.")]
        if model:
            yield [n for n, v in sizes.items() if v == sizes[name]] + model

    def tied(self, name: str) -> list[str]:
        """All varying sizes that equal this one, if some are literals in the class Model and others in get_inputs()."""
        equal = [n for n in self.sizes if self.official_sizes[n] == self.official_sizes[name]]
        inside = [n for n in equal if n in self.source.model_sizes]
        return equal if inside and len(inside) < len(equal) and self.in_step else [name]

    def position(self, name: str, side: int) -> int | None:
        found = self.source.positions.get(name)
        return found[side] if found else None

    def in_proportion(self, parts: Iterable[int]) -> Found | None:
        """Divides all constants by their greatest common divisor and multiplies them by one of `parts`. For modules in
        which a size must equal a sum or a multiple of others."""
        whole = gcd(*self.sizes.values())
        for part in parts:
            if part >= whole:
                continue
            constants = {n: v // whole * part for n, v in self.sizes.items()}
            trace = self.attempt(constants)
            if trace is not None and self.fits(trace):
                return constants, trace
        return None

    def one_by_one(self) -> Found | None:
        """Divides one constant after another as long as that helps: first batches and heads, then the largest. If a
        constant cannot be divided, permits more elements, so that the others keep realistic values."""
        constants: Constants = {}
        frozen: set[str] = set()
        best = self.official
        usual = self.most_elements
        try:
            while not self.fits(best):
                now = {n: constants.get(n, v) for n, v in self.sizes.items() if n not in frozen}
                now = {n: v for n, v in now.items() if v >= LEAST or (v > 2 and goes_first(n))}
                if not now:
                    return None
                name = max(now, key=lambda n: (goes_first(n), now[n]))
                found = self.divided(constants, name) or self.divided_together(constants, name)
                if found is None or found[1].elements() >= best.elements():
                    frozen.add(name)
                    self.most_elements = max(usual, FROZEN_ELEMENTS)
                    if found is None and self.runs >= self.most_runs:
                        return None
                    continue
                constants, best = found
            # The limit may have risen after the run, so this may be the first attempt that fits.
            return (constants, best) if not constants or self.attempt(constants) is not None else None
        finally:
            self.most_elements = usual if not frozen else max(usual, FROZEN_ELEMENTS)

    def divided(self, constants: Constants, name: str) -> Found | None:
        """Returns (constants, trace) with this constant divided by the largest factor that works, or None."""
        value = constants.get(name, self.sizes[name])
        for part in (64, 16, 4, 2) if goes_first(name) else (16, 4, 2):
            if value // part >= (1 if is_batch(name) else 2) and value % part == 0:
                trial = {**constants, name: value // part}
                trace = self.attempt(trial)
                if trace is not None:
                    return trial, trace
        return None

    def divided_together(self, constants: Constants, name: str) -> Found | None:
        """Divides this constant together with another one, such as the total head width and the number of heads."""
        value = constants.get(name, self.sizes[name])
        for other in self.sizes:
            with_it = constants.get(other, self.sizes[other])
            for part in (16, 8, 4, 2):
                if other == name or value % part or with_it % part or value // part < 2:
                    continue
                trial = {**constants, name: value // part, other: with_it // part}
                trace = self.attempt(trial)
                if trace is not None:
                    return trial, trace
        return None

    def odd(self, small: Constants) -> list[Found]:
        """Shapes whose sizes are primes: one balanced, one with a long innermost dimension."""
        found: list[Found] = []
        known = (small, self.attempt(small) or self.official)

        def keep(got: Found | None) -> None:
            if got is not None and all(got[1].shapes() != t.shapes() for _, t in found + [known]):
                found.append(got)

        balanced = self.nearest(small, self.primes(small))
        keep(self.in_whole_windows(balanced) if balanced else None)
        keep(self.long(small))
        for step in (2, 4, 6):
            if len(found) < 2:
                keep(self.nearest(small, self.primes(small, step)))
        for part in (5, 3, 7):
            if len(found) < 2:
                keep(self.in_proportion([part]))
        return found

    def in_whole_windows(self, found: Found) -> Found:
        """The shape with smaller images that windows side by side cover, if the official windows cover theirs."""
        constants, ragged = found[0], found[1].ragged() if self.blocks else {}
        whole = {n: v // ragged[v] * ragged[v] for n, v in constants.items() if v in ragged and v >= ragged[v]}
        trace = self.attempt({**constants, **whole}) if whole else None
        return found if trace is None or not self.fits(trace) else ({**constants, **whole}, trace)

    def now(self, small: Constants) -> Constants:
        return {n: small.get(n, v) for n, v in self.sizes.items()}

    def primes(self, small: Constants, skip: int = 0) -> Constants:
        """Replaces each constant by a different prime, a little above its value."""
        wanted: Constants = {}
        equal: dict[int, int] = {}
        taken: set[int] = set()
        for name, value in sorted(self.now(small).items(), key=lambda item: item[1]):
            official = self.official_sizes[name]
            if official in equal:  # equal sizes stay equal
                wanted[name] = equal[official]
                continue
            target = value * 5 // 8 if value > 16 else value // 2
            block = self.blocks.get(official, 1)
            free = [p for p in PRIMES if p > target // block and p * block not in taken and p % 2]
            wanted[name] = free[min(skip, len(free) - 1)] * block if free else value + 1
            taken.add(wanted[name])
            equal[official] = wanted[name]
        return wanted

    def long(self, small: Constants) -> Found | None:
        """A shape whose innermost dimension exceeds 1,024. Its other sizes are small primes."""
        inner = self.innermost()
        if inner is None:
            return None
        for most in (11, 7, 5, 3):
            others = {n: most if v > most else v for n, v in self.now(small).items()}
            others = {n: 3 if is_batch(n) and v > 3 else v for n, v in others.items()}
            wanted = {**others, inner: INNER}
            if self.guess(wanted) <= self.most_elements:
                trace = self.attempt(wanted)
                if trace is not None and self.fits(trace):
                    return wanted, trace
        return self.nearest(small, wanted)

    def innermost(self) -> str | None:
        """The constant that is the last size of the largest input."""
        inputs = [t for role, t in self.official.tensors.values() if role == "input" and t.dim()]
        if not inputs:
            return None
        last = max(inputs, key=lambda t: t.numel()).shape[-1]
        return next((n for n, v in reversed(self.sizes.items()) if v == last), None)

    def nearest(self, small: Constants, wanted: Constants) -> Found | None:
        """Tries all of `wanted` at once, then one constant after another. If a prime does not work (channels in
        groups), tries odd multiples of a power of two."""
        wanted = {n: v for n, v in wanted.items() if v != self.official_sizes[n]}
        if not wanted:
            return None
        trace = self.attempt(wanted)
        if trace is not None and self.fits(trace):
            return wanted, trace
        constants = dict(small)
        best: Trace | None = None
        for name, value in sorted(wanted.items(), key=lambda item: item[1]):
            for size in (value, *MULTIPLES):
                trial = {**constants, **dict.fromkeys(self.tied(name), size)}
                trace = self.attempt(trial)
                if trace is None:
                    continue
                if self.fits(trace):
                    constants, best = trial, trace
                break
        return None if best is None else (constants, best)


def shapes(source: Source, official: Trace, train: bool,
           most_elements: int) -> tuple[list[Json], list[Trace], str | None]:
    """Returns (cases, traces, note): small, odd and long shapes, and why some are missing."""
    shrinker = Shrinker(source, official, train, most_elements)
    small = shrinker.keeping_groups()
    if small is None:
        return [], [], f"no small shape for the simulator: {shrinker.reason}"
    cases = [small[1].case("small", "small", small[0])]
    traces, note = [small[1]], None
    shrinker.renew()
    odd = shrinker.odd(small[0]) if shrinker.sizes else []
    if small[1].elements() > ONE_ODD_ELEMENTS:
        odd = odd[:1]
    if not odd and shrinker.leads:
        shrinker.sizes = shrinker.leads
        odd = shrinker.odd(small[0])
    for i, (constants, trace) in enumerate(odd):
        cases.append(trace.case(f"odd{i + 1}", "odd", constants))
        traces.append(trace)
    if len(odd) < 2 and small[1].elements() <= ONE_ODD_ELEMENTS:
        note = f"only {len(odd)} odd shapes: {shrinker.reason}"
    known = [small, *odd]
    for i, (constants, trace) in enumerate(lengths.long_shapes(shrinker, official.workload(), known)):
        cases.append(trace.case(f"long{i + 1}", "derived", constants))
        traces.append(trace)
    return cases, traces, note
