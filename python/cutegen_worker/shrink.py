# SPDX-License-Identifier: Apache-2.0
"""Small and odd shapes: the same program at sizes that the simulator can afford.

Constants are scaled down together: every one above a cap becomes the cap. The cap is guessed from
the official shapes and lowered until the work fits. A shape counts only if the module still builds
and runs, and its calls are the same but for sizes (graph.signature). Odd shapes replace constants
by primes, all at once, else one after the other. Where sizes depend on one another, all are scaled in
proportion. Few runs: each costs milliseconds.
"""

import re
import time
from math import gcd, prod

from .errors import WorkerError
from .trace import Trace

CAPS = [512, 256, 128, 64, 48, 32, 24, 16, 12, 8, 6, 4]
MOST_FLOPS = 5e7
MOST_RUNS = 40
MOST_SECONDS = 3.0
LEAST = 8  # smaller constants are axes, kernel sizes, group counts
INNER = 1031  # over 1,024 and prime
BATCH = re.compile(r"batch|^(bs|n|b)$", re.IGNORECASE)
FIXED = re.compile(r"kernel|strid|pad|dilat|axis|(?<![a-z])eps|seed|num_layers", re.IGNORECASE)
PRIMES = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 61, 67, 71, 79, 89, 97, 101, 113,
          127, 131, 149, 167, 191, 211, 251, 257, 293, 331, 383, 449, 509, 521]  # fmt: skip
MULTIPLES = [6, 12, 24, 48]


def eligible(name, value):
    if FIXED.search(name):
        return False
    return value >= LEAST or (value >= 2 and BATCH.search(name.split(".")[0]) is not None)


class Shrinker:
    def __init__(self, source, official, train, most_elements):
        self.source, self.official, self.train = source, official, train
        self.most_elements = most_elements
        self.sizes = {n: v for n, v in source.constants.items() if eligible(n, v)}
        self.runs, self.start, self.cache = 0, time.monotonic(), {}
        self.reason = "no module-level integer constant decides a size"

    def attempt(self, constants):
        """The trace with these constants if it is the same program; None else."""
        key = tuple(sorted(constants.items()))
        if key not in self.cache:
            self.cache[key] = self.run(constants)
        return self.cache[key]

    def run(self, constants):
        if self.runs >= MOST_RUNS or time.monotonic() - self.start > MOST_SECONDS:
            self.reason = "no time left to look for smaller sizes"
            return None
        self.runs += 1
        try:
            trace = Trace(self.source, constants, self.train)
        except WorkerError as error:
            self.reason = error.message
            return None
        if trace.signature() != self.official.signature():
            self.reason = "another size makes another program"
            return None
        if trace.hollow() and not self.official.hollow():
            self.reason = "another size leaves nothing to compute"
            return None
        return trace

    def fits(self, trace):
        return trace.elements() <= self.most_elements and trace.flops <= MOST_FLOPS

    def guess(self, constants):
        """Elements over all tensors with these constants, if each size follows its constant."""
        total = 0
        for shape in self.official.shapes().values():
            total += prod(self.follow(d, constants) for d in shape)
        return total

    def follow(self, size, constants):
        """A size as it would be: in proportion to the constant that it is nearest to."""
        near = min(self.sizes.items(), key=lambda item: max(item[1], size) / max(1, min(item[1], size)))
        if not size / 4 <= near[1] <= size * 4:
            return size
        return max(1, size * constants.get(near[0], near[1]) // near[1])

    def capped(self, cap):
        """Every constant above the cap becomes the cap; batches become smaller still."""
        wanted = {}
        for name, value in self.sizes.items():
            most = max(2, cap // 4) if BATCH.search(name) and cap <= 16 else cap
            if value > most:
                wanted[name] = most
        return wanted

    def small(self):
        """(constants, trace) under the work limit, or None."""
        if self.fits(self.official):
            return {}, self.official
        if not self.sizes:
            return None
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
        self.reason = "the module does not get small enough" if failed < 2 else self.reason
        return self.in_proportion(reversed(range(1, 9))) or self.one_by_one()

    def in_proportion(self, parts):
        """All constants divided by what divides them all, times one of `parts`: for modules where one
        size must equal a sum or a multiple of others."""
        whole = gcd(*self.sizes.values())
        for part in parts:
            if part >= whole:
                continue
            constants = {n: v // whole * part for n, v in self.sizes.items()}
            trace = self.attempt(constants)
            if trace is not None and self.fits(trace):
                return constants, trace
        return None

    def one_by_one(self):
        """Halves one constant after the other, the largest first, as long as anything helps."""
        constants, best = {}, self.official
        frozen = set()
        while not self.fits(best):
            now = {n: constants.get(n, v) for n, v in self.sizes.items() if n not in frozen}
            now = {n: v for n, v in now.items() if v >= LEAST or (v >= 2 and BATCH.search(n))}
            if not now:
                return None
            name = max(now, key=now.get)
            trace = None
            for part in (16, 4, 2):
                value = now[name] // part
                if value >= (1 if BATCH.search(name) else 2) and now[name] % part == 0:
                    trace = self.attempt({**constants, name: value})
                    if trace is not None:
                        break
            if trace is None or trace.elements() >= best.elements():
                frozen.add(name)
                if trace is None and self.runs >= MOST_RUNS:
                    return None
                continue
            constants, best = {**constants, name: value}, trace
        return constants, best

    def odd(self, small):
        """Shapes whose sizes are primes: one balanced, one with a long innermost dimension."""
        found = []

        def keep(got):
            if got is not None and all(got[1].shapes() != t.shapes() for _, t in found):
                found.append(got)

        keep(self.nearest(small, self.primes(small)))
        keep(self.long(small))
        for step in (2, 4, 6):
            if len(found) < 2:
                keep(self.nearest(small, self.primes(small, step)))
        for part in (5, 3, 7):
            if len(found) < 2:
                keep(self.in_proportion([part]))
        return found

    def now(self, small):
        return {n: small.get(n, v) for n, v in self.sizes.items()}

    def primes(self, small, skip=0):
        """A prime of its own, a little above, for each constant."""
        wanted, taken, equal = {}, set(), {}
        for name, value in sorted(self.now(small).items(), key=lambda item: item[1]):
            official = self.source.constants[name]
            if official in equal:  # sizes that are equal by intent stay equal
                wanted[name] = equal[official]
                continue
            target = value * 5 // 8 if value > 16 else value // 2
            free = [p for p in PRIMES if p > target and p not in taken and p % 2]
            wanted[name] = free[min(skip, len(free) - 1)] if free else value + 1
            taken.add(wanted[name])
            equal[official] = wanted[name]
        return wanted

    def long(self, small):
        """The innermost dimension over 1,024, the others as small primes."""
        inner = self.innermost()
        if inner is None:
            return None
        for most in (11, 7, 5, 3):
            others = {n: most if v > most else v for n, v in self.now(small).items()}
            others = {n: 3 if BATCH.search(n) and v > 3 else v for n, v in others.items()}
            wanted = {**others, inner: INNER}
            if self.guess(wanted) <= self.most_elements:
                trace = self.attempt(wanted)
                if trace is not None and self.fits(trace):
                    return wanted, trace
        return self.nearest(small, wanted)

    def innermost(self):
        """The constant that is the last size of the largest input."""
        inputs = [t for role, t in self.official.tensors.values() if role == "input" and t.dim()]
        if not inputs:
            return None
        last = max(inputs, key=lambda t: t.numel()).shape[-1]
        return next((n for n, v in reversed(self.sizes.items()) if v == last), None)

    def nearest(self, small, wanted):
        """All of `wanted` at once, else as much of it as works, one constant after the other; where a
        prime does not (channels in groups), an odd multiple of a power of two."""
        wanted = {n: v for n, v in wanted.items() if v != self.source.constants[n]}
        if not wanted:
            return None
        trace = self.attempt(wanted)
        if trace is not None and self.fits(trace):
            return wanted, trace
        constants, best = dict(small), None
        for name, value in sorted(wanted.items(), key=lambda item: item[1]):
            for size in (value, *MULTIPLES):
                trial = {**constants, name: size}
                trace = self.attempt(trial)
                if trace is None:
                    continue
                if self.fits(trace):
                    constants, best = trial, trace
                break
        return None if best is None else (constants, best)


def shapes(source, official, train, most_elements):
    """(cases, traces, note): small and odd shapes, and why some are missing."""
    shrinker = Shrinker(source, official, train, most_elements)
    small = shrinker.small()
    if small is None:
        return [], [], f"no small shape for the simulator: {shrinker.reason}"
    cases = [small[1].case("small", "small", small[0])]
    traces, note = [small[1]], None
    odd = shrinker.odd(small[0]) if shrinker.sizes else []
    for i, (constants, trace) in enumerate(odd):
        cases.append(trace.case(f"odd{i + 1}", "odd", constants))
        traces.append(trace)
    if len(odd) < 2:
        note = f"only {len(odd)} odd shapes: {shrinker.reason}"
    return cases, traces, note
