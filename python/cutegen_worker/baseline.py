# SPDX-License-Identifier: Apache-2.0
"""Baselines: what the user would run today, timed on a GPU by the same rules as a candidate.

A worker that times baselines never sees a candidate. It constructs the module and its inputs on the GPU as
the task file does, opens each baseline once, and then times it in small blocks, which the evaluator
alternates with blocks of a candidate. Modes: cold (other data in the L2, launches queued behind a waiting
kernel), warm, graph (a CUDA graph, cold), call (the host's clock, cold).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from . import tuned
from .errors import WorkerError, blame, first_line
from .mutated import results, state_of
from .names import Inputs
from .official import Places, drop_memory
from .slot import Slot
from .source import Source
from .trace import SIZES, build
from .wire import Answer, Json
from .worker import Worker

Way = Callable[..., Any]

LEAST_FLUSH = 128 << 20
WARM_UP = 3
MOST_SLEEP_NS = 2e9
LEARNING_S, SLOWER = 0.2, 1.05
BUSY_S = 4.0  # the longest wait for other work on the GPU to end, for all runs of a module
AHEAD_S = 1e-4
FEW = 5  # coolings that decide whether the GPU is quiet
LATE = 4  # consecutive calls that the GPU began before the host had queued them completely
FAR = 0.02  # share of the largest value; a baseline further from eager computes another function
FAR_STEPS = 2  # or this many steps of a coarse output's dtype: float8 has steps of an eighth
COMPILED = {"compile": None, "compile-max": "max-autotune-no-cudagraphs"}


class Flags:
    """Sets whether matrix products and cuDNN may use TF32. PyTorch's defaults are (False, True)."""

    OF = {"eager-fp32": (False, False), "eager-tf32": (True, True)}

    def __init__(self, kind: str = "eager") -> None:
        self.wanted = self.OF.get(kind, (False, True))

    def __enter__(self) -> None:
        self.before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = self.wanted

    def __exit__(self, *_: object) -> None:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = self.before


class Pace:
    """How long the GPU waits before a baseline's call, so that the host can queue the whole call.

    Some calls wait for the GPU themselves (they read a value back, or copy from pageable memory) and cannot be
    queued. Their host time would include the wait, so each wait would be longer than the last. Before such calls,
    the GPU does not wait.
    """

    def __init__(self) -> None:
        self.host_ns, self.late = 2e5, 0

    def wait_ns(self) -> float:
        return 0.0 if self.late >= LATE else min(1.5 * self.host_ns + 5e4, MOST_SLEEP_NS)

    def saw(self, host_ns: float, begun: bool) -> None:
        """Records a call: the host's time, and whether the GPU began before the host had queued the whole call."""
        if self.late < LATE:
            self.host_ns, self.late = host_ns, self.late + 1 if begun else 0


class QuietMemory:
    """Finds out whether other work uses the GPU's memory, from the times that it takes to cool the L2.

    Cooling the L2 is always the same work, so it takes longer only if other work uses the memory. From LEARNING_S on,
    the least time so far counts as the time on a quiet GPU. Before that, the GPU may never have been quiet: when a
    process ends, the driver overwrites the memory that it leaves, for a tenth of a second or more.
    """

    def __init__(self) -> None:
        self.least, self.first = math.inf, 0.0
        self.times: list[float] = []  # ms, since start()

    def start(self) -> None:
        self.times = []

    def saw(self, ms: float) -> None:
        self.first = self.first or time.monotonic()
        self.least = min(self.least, ms)
        self.times.append(ms)

    def is_known(self) -> bool:
        return self.first > 0 and time.monotonic() - self.first >= LEARNING_S

    def is_quiet(self) -> bool:
        return not self.times or statistics.median(self.times) <= SLOWER * self.least


class Opened:
    """The module and its inputs on the GPU, and the baselines that run it."""

    initial: dict[str, Tensor] = {}  # initial values of the tensors that forward() mutates
    returns: Sequence[str] = ()  # as in core/task.h
    waited_s = 0.0

    def __init__(self, request: Json, slot: Slot) -> None:
        self.slot = slot
        self.device = torch.device(request["device"])
        self.file = request["file"]
        source = Source(request["source"], self.file)
        torch.manual_seed(request["seed"])
        with slot, torch.device(self.device):
            self.take(*build(source.run(request["constants"]), self.file))
            torch.cuda.synchronize(self.device)
        self.model.train(request["train_mode"])
        for p in self.model.parameters():
            p.requires_grad_(False)
        names, self.returns = request.get("mutated", ()), request.get("returns", ())
        self.initial = {n: t.clone() for n, t in self.tensors(names)}
        self.ways: dict[str, tuple[Way, Flags]] = {}
        self.graphs: dict[str, tuple[torch.cuda.CUDAGraph, Any]] = {}
        self.paces: dict[tuple[str, str], Pace] = {}
        self.started: set[tuple[str, str]] = set()
        self.memory = QuietMemory()
        self.flush = torch.empty(max(LEAST_FLUSH, 3 * l2_bytes(self.device)), dtype=torch.uint8,
                                 device=self.device)
        self.hertz = torch.cuda.get_device_properties(self.device).clock_rate * 1e3

    def take(self, model: torch.nn.Module, inputs: Inputs) -> None:
        """Moves the module and its inputs to the device."""
        self.model = model.to(self.device)
        self.given: dict[str, Tensor] = {}
        self.args, self.kwargs = inputs.map(
            lambda name, t: self.given.setdefault(name, t.to(self.device)))

    @property
    def named(self) -> dict[str, Tensor]:
        """All current tensors by their names in the task. forward() may have replaced some."""
        return {**state_of(self.model, self.given), **self.given}

    def tensors(self, names: Iterable[str]) -> list[tuple[str, Tensor]]:
        """(name, tensor) of the current inputs, parameters and buffers."""
        found = self.named if names else {}
        return [(n, found[n]) for n in names]

    def restore(self) -> None:
        """Restores the initial values of mutated tensors."""
        with torch.no_grad():
            for name, tensor in self.tensors(self.initial):
                tensor.copy_(self.initial[name])

    def add(self, kind: str, target: str) -> tuple[float, bool]:
        """Opens one baseline. Returns its result's distance from eager's, and whether that is near enough."""
        if kind in COMPILED:
            call = compiled(self.model, COMPILED[kind])
        elif kind == "callable":
            call = load(target, os.path.dirname(os.path.abspath(self.file)))
        else:
            call = self.model
        flags = Flags(kind)
        self.ways[kind] = (call, flags)
        with blame(self.file, f"the baseline {kind}", SIZES):
            if kind in COMPILED:  # builds without the GPU's lock, but takes the lock for autotuning
                self.slot.guard_autotuning()
                self.results(call, flags)
            with self.slot:
                return self.difference(kind, call, flags)

    def difference(self, kind: str, call: Way, flags: Flags) -> tuple[float, bool]:
        wanted = self.results(self.model, Flags())
        got: list[Tensor] = []
        for _ in range(WARM_UP):
            del got
            got = self.results(call, flags)
        torch.cuda.synchronize(self.device)
        if len(wanted) != len(got):
            raise WorkerError(f"the baseline {kind} returns {len(got)} tensors, not {len(wanted)}",
                              self.file, "return what forward() returns")
        found = [(distance(w, g), farthest(w.dtype)) for w, g in zip(wanted, got)]
        return max([far for far, _ in found], default=0.0), all(far <= most for far, most in found)

    def results(self, call: Way, flags: Flags) -> list[Tensor]:
        self.restore()
        with torch.no_grad(), flags:
            out = call(*self.args, **self.kwargs)
        found = results(out, {"returns": self.returns}, dict(self.tensors(self.initial)))
        return [t.clone() for t in found] if self.initial else found  # the next call overwrites them

    def run(self, kind: str) -> Any:
        call, flags = self.ways[kind]
        with flags:
            return call(*self.args, **self.kwargs)

    def run_on(self, kind: str, places: Places, outputs: list[str]) -> None:
        """Runs a baseline on the values in `places` and puts its results there. The module keeps the values."""
        if kind not in self.ways:
            raise WorkerError(f"the baseline {kind} is not open", "", "", "internal")
        with self.slot, torch.no_grad(), blame(self.file, f"the baseline {kind}", SIZES):
            for name, t in self.named.items():
                if (value := places.view(name, "value")) is not None:
                    t.data.copy_(value)
            self.initial = {n: t.clone() for n, t in self.tensors(self.initial)}
            found = self.results(*self.ways[kind])
        if len(found) != len(outputs):
            raise WorkerError(f"the baseline {kind} returns {len(found)} tensors, not {len(outputs)}",
                              self.file, "return what forward() returns")
        for name, t in zip(outputs, found):
            part = "value" if name in self.initial else "output"
            view = places.view(name, part)
            if view is None or view.dtype != t.dtype:
                raise WorkerError(f"the baseline {kind} returns {t.dtype} for '{name}', not the "
                                  "described dtype", self.file, "return what forward() returns")
            places.put(name, part, t.detach())

    def time(self, kind: str, mode: str, samples: int) -> list[float]:
        if kind not in self.ways:
            raise WorkerError(f"the baseline {kind} is not open", "", "", "internal")
        with self.slot, torch.no_grad(), blame(self.file, f"the baseline {kind}", SIZES):
            if (kind, mode) not in self.started:  # drops the first run, which has one-time costs
                self.started.add((kind, mode))
                self.time(kind, mode, 1)
            call = self.graph(kind).replay if mode == "graph" else lambda: self.run(kind)
            while True:
                self.wait_for_quiet()
                self.memory.start()
                out = [self.by_the_clock(kind) if mode == "call" else self.by_events(kind, call, mode)
                       for _ in range(samples)]
                if self.memory.is_quiet() or self.waited_s > BUSY_S:
                    return out

    def wait_for_quiet(self) -> None:
        """Waits until no other work slows the GPU's memory down: the driver overwrites memory that a process frees."""
        start = time.monotonic()
        while self.waited_s <= BUSY_S:
            self.memory.start()
            for _ in range(FEW):
                self.cool()()
            if self.memory.is_known() and self.memory.is_quiet():
                return
            now = time.monotonic()
            self.waited_s, start = self.waited_s + now - start, now

    def cool(self) -> Callable[[], None]:
        """Cools the L2. Returns a function to call later, which waits for the GPU and records how long this took."""
        self.restore()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        half = self.flush.numel() // 2
        torch.cuda._sleep(int(AHEAD_S * self.hertz))  # so that the host's work does not count
        begin.record()
        self.flush[:half].fill_(len(self.ways))
        self.flush[half:].copy_(self.flush[:half])
        end.record()

        def note() -> None:
            end.synchronize()
            self.memory.saw(begin.elapsed_time(end))

        return note

    def by_events(self, kind: str, call: Callable[[], Any], mode: str) -> float:
        """Queues the launches while a kernel keeps the GPU waiting, so that the time excludes the host."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if mode == "warm":
            self.run(kind)
            self.restore()
            note = None
        else:
            note = self.cool()
        pace = self.paces.setdefault((kind, mode), Pace())
        if wait := pace.wait_ns():
            torch.cuda._sleep(int(wait * 1e-9 * self.hertz))
        begin.record()
        start = time.perf_counter_ns()
        call()
        pace.saw(time.perf_counter_ns() - start, begin.query())
        end.record()
        end.synchronize()
        if note:
            note()
        return begin.elapsed_time(end) * 1e6

    def by_the_clock(self, kind: str) -> float:
        self.cool()()
        torch.cuda.synchronize(self.device)
        start = time.perf_counter_ns()
        self.run(kind)
        torch.cuda.synchronize(self.device)
        return float(time.perf_counter_ns() - start)

    def graph(self, kind: str) -> torch.cuda.CUDAGraph:
        if kind not in self.graphs:
            graph = torch.cuda.CUDAGraph()
            stream = torch.cuda.Stream(self.device)
            stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP):
                    self.run(kind)
            torch.cuda.current_stream(self.device).wait_stream(stream)
            with torch.cuda.graph(graph):
                kept = self.run(kind)
            self.graphs[kind] = (graph, kept)
        return self.graphs[kind][0]


def l2_bytes(device: torch.device) -> int:
    return getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)


def compiled(model: torch.nn.Module, mode: str | None) -> Way:
    """Compiles the module with torch.compile in this process."""
    torch._dynamo.reset()
    return torch.compile(model, mode=mode)


def load(target: str, folder: str) -> Way:
    module, _, name = target.partition(":")
    if not module or not name:
        raise WorkerError(f"'{target}' does not name a callable", "", "write MODULE:CALLABLE")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        call = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise WorkerError(f"the baseline '{target}' cannot be imported: {first_line(error)}", "",
                          "put its module beside the task file") from None
    if not callable(call):
        raise WorkerError(f"'{target}' is not a callable", "", "write MODULE:CALLABLE")
    return call


def farthest(dtype: torch.dtype) -> float:
    """The largest distance between two results of this dtype that count as the same function."""
    return max(FAR, FAR_STEPS * torch.finfo(dtype).eps) if dtype.is_floating_point else FAR


def distance(wanted: Tensor, got: Tensor) -> float:
    """The largest difference, relative to the largest value."""
    if wanted.shape != got.shape:
        raise WorkerError(f"a baseline returns a tensor of {tuple(got.shape)}, not "
                          f"{tuple(wanted.shape)}", "", "return what forward() returns")
    if not wanted.numel():
        return 0.0
    if not wanted.is_floating_point():
        return float((wanted != got).any())
    worst, largest = 0.0, 0.0
    wanted, got = wanted.reshape(-1), got.reshape(-1)
    for at in range(0, wanted.numel(), 1 << 26):
        w, g = wanted[at : at + (1 << 26)].double(), got[at : at + (1 << 26)].double()
        if (w.isnan() != g.isnan()).any():
            return math.inf
        apart = torch.where(w == g, 0.0, (w - g).abs())  # equal infinities have no distance
        worst = max(worst, torch.nan_to_num(apart, 0.0, math.inf).max().item())
        largest = max(largest, torch.nan_to_num(w.abs(), 0.0, 0.0).max().item())
    return worst / largest if largest else float(worst > 0)


def open_baselines(request: Json, worker: Worker) -> Answer:
    """Opens baselines and says which are available: [{kind, far} or {kind, why}]."""
    worker.opened = None
    try:
        with blame(request["file"], "the module on the GPU", SIZES), contextlib.redirect_stdout(sys.stderr):
            worker.opened = Opened(request, worker.slot)
    except torch.OutOfMemoryError as error:
        raise no_memory("the module on the GPU", error) from None
    told = [add_way(worker.opened, wanted) for wanted in request["kinds"]]
    worker.slot.opened()
    return {"opened": told, "torch": torch.__version__}, None


def add_way(opened: Opened, wanted: Json) -> Json:
    kind = wanted["kind"]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            far, near = opened.add(kind, wanted.get("target", ""))
        if near:
            return {"kind": kind, "far": far}
        told = {"kind": kind, "why": f"its result is {far:.1%} away from eager's"}
    except torch.OutOfMemoryError as error:
        told = {"kind": kind, "why": no_memory(f"the baseline {kind}", error).message}
    except WorkerError as error:
        told = {"kind": kind, "why": error.message}
    opened.ways.pop(kind, None)
    gc.collect()
    torch.cuda.empty_cache()
    return told


def no_memory(doing: str, error: BaseException) -> WorkerError:
    return WorkerError(f"{doing}: out of memory: " + first_line(error).split(" GPU ")[0], "",
                       "free memory of the GPU, or use smaller sizes", "unsupported")


def add_baseline(request: Json, worker: Worker) -> Answer:
    """Adds a baseline of the open module: {kind, far} or {kind, why}. If the request has other workers' times
    (`tuned`), the reply has all times known afterwards."""
    if worker.opened is None:
        raise WorkerError("no module is open", "", "", "internal")
    if "tuned" not in request:
        return {"opened": [add_way(worker.opened, request)]}, None
    tuned.put(request["tuned"])
    return {"opened": [add_way(worker.opened, request)], "tuned": tuned.found()}, None


def close_baselines(_: Json, worker: Worker) -> Answer:
    """Frees the GPU's memory. Fails if a kernel broke the context."""
    worker.opened = None
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return {}, None


def run_baseline(request: Json, worker: Worker) -> Answer:
    """Runs a baseline once on the values in the caller's memory, and writes its outputs there."""
    opened = worker.opened
    if opened is None:
        raise WorkerError("no baselines are open", "", "", "internal")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            opened.run_on(request["kind"], Places(request["slots"], worker.memory), request["outputs"])
        settle(opened.device)
    except torch.OutOfMemoryError as error:
        raise no_memory(f"the baseline {request['kind']}", error) from None
    finally:
        drop_memory(worker.memory)
    return {}, None


def settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def time_baseline(request: Json, worker: Worker) -> Answer:
    opened = worker.opened
    if opened is None:
        raise WorkerError("no baselines are open", "", "", "internal")
    with contextlib.redirect_stdout(sys.stderr):
        return {"samples_ns": opened.time(request["kind"], request["mode"], request["samples"])}, None
