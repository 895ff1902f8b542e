# SPDX-License-Identifier: Apache-2.0
"""Compares the export's times with PyTorch's; needs only PyTorch. Usage: python bench.py [--device cuda:0] [--json]

Each round runs the export and the baselines in random order. Modes: `cold` writes and copies a large buffer
before each run, so that the L2 holds other data, queues the run behind a waiting kernel and times it with
events. `graph` does the same with a CUDA graph. `call` uses the host's clock, from the call to its end, with
a cold L2. Times are medians, ratios are medians over rounds. If the export has a certificate, the output also lists
the certificate's times. There, the mode `call` of the program starts in C++, without PyTorch's overhead.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from load import Model, data, exported, reference

LEAST_FLUSH = 128 << 20
WARM_UP = 3
MOST_WAIT_NS = 2e9
LATE = 4  # consecutive calls that the GPU began before they were queued; after these, the GPU no longer waits


def moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        made = [moved(item, device) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


class Way:
    """The export or a baseline, with its setting for float32 products."""

    def __init__(self, name: str, model: Any, inputs: Any, tf32: bool = False) -> None:
        self.name, self.model, self.inputs, self.tf32 = name, model, inputs, tf32
        self.graph: Any = None
        self.host_ns, self.late = 2e5, 0
        self.times: dict[str, list[float]] = {}

    def run(self) -> Any:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = self.tf32, True
        return self.model(**self.inputs) if isinstance(self.inputs, dict) else self.model(*self.inputs)

    def capture(self, device: torch.device) -> None:
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.run()
        torch.cuda.current_stream(device).wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = self.run()


class Clock:
    def __init__(self, device: torch.device) -> None:
        properties = torch.cuda.get_device_properties(device)
        size = max(LEAST_FLUSH, 3 * getattr(properties, "L2_cache_size", 0))
        self.buffer = torch.empty(size, dtype=torch.uint8, device=device)
        self.hertz = getattr(properties, "clock_rate", 2_000_000) * 1e3
        self.device, self.runs = device, 0

    def cool(self) -> None:
        self.runs += 1
        half = self.buffer.numel() // 2
        self.buffer[:half].fill_(self.runs % 256)
        self.buffer[half:].copy_(self.buffer[:half])

    def by_events(self, way: Way, graph: bool) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.cool()
        if way.late < LATE:
            torch.cuda._sleep(int(min(1.5 * way.host_ns + 5e4, MOST_WAIT_NS) * 1e-9 * self.hertz))
        begin.record()
        start = time.perf_counter_ns()
        if graph:
            way.graph.replay()
        else:
            way.run()
        way.host_ns = time.perf_counter_ns() - start
        if way.late < LATE:
            way.late = way.late + 1 if begin.query() else 0
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3

    def by_the_host(self, way: Way) -> float:
        self.cool()
        torch.cuda.synchronize(self.device)
        start = time.perf_counter_ns()
        way.run()
        torch.cuda.synchronize(self.device)
        return (time.perf_counter_ns() - start) / 1e3

    def take(self, way: Way, mode: str) -> None:
        time_us = self.by_the_host(way) if mode == "call" else self.by_events(way, mode == "graph")
        way.times.setdefault(mode, []).append(time_us)


def ways_of(device: torch.device, compiled: bool) -> Iterator[Way]:
    init: list[Any] = getattr(reference, "get_init_inputs", list)()
    with torch.device(device):
        torch.manual_seed(1)
        plain = reference.Model(*init)
        torch.manual_seed(1)
        made = Model(*init)
        inputs = reference.get_inputs()
    for module in (plain, made):
        module.to(device).train(data["train_mode"]).requires_grad_(False)
    inputs = moved(inputs, device)
    yield Way("exported", made, inputs)
    yield Way("eager", plain, inputs)
    yield Way("eager-tf32", plain, inputs, True)
    if compiled:
        yield Way("compile", torch.compile(plain), inputs)


def ready(ways: Iterable[Way], modes: list[str], device: torch.device) -> Iterator[Way]:
    """The ones that run. Warm-up runs pay one-time costs."""
    for way in ways:
        try:
            for _ in range(WARM_UP):
                way.run()
            if "graph" in modes:
                way.capture(device)
            torch.cuda.synchronize(device)
            yield way
        except Exception as error:
            if way.name == "exported":
                raise
            print(f"{way.name} is skipped: {str(error).splitlines()[0][:200]}", file=sys.stderr)


def certified() -> dict[tuple[str, str], float]:
    """{(mode, baseline or "exported"): microseconds} from the certificate, if there is one."""
    file = Path(__file__).resolve().with_name("certificate.json")
    if not file.exists():
        return {}
    modes = json.loads(file.read_text(encoding="utf-8")).get("modes", [])
    found = {(m["mode"], "exported"): m["time_ns"] / 1e3 for m in modes}
    found.update({(m["mode"], p["against"]): p["other_ns"] / 1e3 for m in modes for p in m["against"]})
    return found


def rows(ways: list[Way], modes: list[str]) -> Iterator[dict[str, Any]]:
    known = certified()
    for mode in modes:
        own = ways[0].times[mode]
        for way in ways:
            times, told = way.times[mode], known.get((mode, way.name))
            middle = statistics.median(times)
            yield {"mode": mode, "way": way.name, "time_us": middle, "rounds": len(times),
                   "speedup": statistics.median(t / o for t, o in zip(times, own)),
                   "certified_us": told, "apart": apart(mode, way.name, middle, told)}


def apart(mode: str, way: str, time: float, told: float | None) -> float | None:
    """The relative difference from the certificate's time; None if that measured another call."""
    return None if told is None or (mode, way) == ("call", "exported") else time / told - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20,
                        help="time limit; each mode gets a share and starts no new round after it")
    parser.add_argument("--modes", default="cold,graph,call")
    parser.add_argument("--no-compile", action="store_true", help="do not time torch.compile")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench: PyTorch finds no GPU, and timing needs one")
    device, modes = torch.device(options.device), options.modes.split(",")
    torch.cuda.set_device(device)
    if exported.trouble(device):
        print("the benchmark does not use the kernels:", exported.trouble(device), file=sys.stderr)
    clock = Clock(device)
    with torch.no_grad():
        ways = list(ready(ways_of(device, not options.no_compile), modes, device))
        for mode in modes:
            end = time.monotonic() + options.seconds / len(modes)
            for done in range(options.rounds):
                if done >= 5 and time.monotonic() > end:
                    break
                for way in random.sample(ways, len(ways)):
                    clock.take(way, mode)
    table = list(rows(ways, modes))
    if options.json:
        gpu = torch.cuda.get_device_name(device)
        print(json.dumps({"name": data["name"], "gpu": gpu, "torch": torch.__version__, "rows": table}))
        return
    print(f"{data['name']} on {torch.cuda.get_device_name(device)}, PyTorch {torch.__version__}")
    for row in table:
        told = "" if row["certified_us"] is None else f"   certified {row['certified_us']:10.1f} us"
        told += "" if row["apart"] is None else f" ({row['apart']:+.1%})"
        told += " from C++" if told and row["apart"] is None else ""
        print(f"{row['mode']:6} {row['way']:11} {row['time_us']:10.1f} us  {row['speedup']:6.2f}x  "
              f"{row['rounds']} rounds{told}")


if __name__ == "__main__":
    main()
