# SPDX-License-Identifier: Apache-2.0
"""The device of a third-party solution: the memory that it gets, and the clock around its calls.

This module looks up everything that it uses in torch before the process imports the solution's file. So a
solution that replaces names in torch replaces them only for itself.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .memory import READ_AND_WRITE, READ_ONLY, Mapped
from .names import TORCH
from .wire import Json

Named = dict[str, Tensor]
Timed = tuple[Any, float, float]  # result, ns, ns of the host

LEAST_FLUSH = 128 << 20
MOST_SLEEP_NS = 2e9
IDLE_TRIES = 5


class HostBlock:
    """A memory file that the evaluator shares."""

    def __init__(self, descriptor: int) -> None:
        self.window = mmap.mmap(descriptor, os.fstat(descriptor).st_size)

    def tensor(self, offset: int, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        count = torch.Size(shape).numel()
        if not count:
            return torch.empty(shape, dtype=dtype, device="cpu")
        flat = torch.frombuffer(self.window, dtype=dtype, count=count, offset=offset)
        return flat.view(shape)

    def close(self) -> None:
        """Does nothing, because the mapping lives as long as the last tensor in it."""


class Given:
    """The blocks of memory for the next request."""

    def __init__(self) -> None:
        self.blocks: list[HostBlock | Mapped] = []

    def take(self, request: Json, descriptors: Sequence[int]) -> None:
        if request["first"]:
            self.drop()
        for fd, block in zip(descriptors, request["blocks"]):
            access = READ_ONLY if block["read_only"] else READ_AND_WRITE
            host = block["host"]
            own = HostBlock(fd) if host else Mapped(fd, block["bytes"], access, again=False)
            self.blocks.append(own)

    def tensors(self, request: Json) -> tuple[Named, Named, Named]:
        """Returns {name: tensor} for each part."""
        parts: dict[str, Named] = {"value": {}, "output": {}, "final": {}}
        for t in request["tensors"]:
            at = self.blocks[t["memory"]]
            parts[t["part"]][t["name"]] = at.tensor(t["offset"], t["shape"], TORCH[t["dtype"]])
        return parts["value"], parts["output"], parts["final"]

    def drop(self) -> None:
        while self.blocks:
            self.blocks.pop().close()


class Host:
    """The CPU, for correctness only."""

    name = "cpu"

    def __init__(self) -> None:
        self.clock = time.perf_counter_ns

    def give(self, tensor: Tensor) -> Tensor:
        return tensor

    def settle(self) -> None:
        pass

    def empty(self) -> None:
        pass

    def timed(self, call: Callable[[], Any], _: float) -> Timed:
        start = self.clock()
        out = call()
        return out, float(self.clock() - start), 0.0


class Gpu:
    """A GPU. It queues calls behind a waiting kernel, with a cold L2, as for baselines."""

    def __init__(self, name: str, tf32: bool, tf32_convolutions: bool = False) -> None:
        self.name = name
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32 or tf32_convolutions
        self.clock, self.sleep = time.perf_counter_ns, torch.cuda._sleep
        self.synchronize, self.empty_cache = torch._C._cuda_synchronize, torch.cuda.empty_cache
        self.stream = torch.cuda.current_stream()
        Event = torch.cuda.Event
        self.begin, self.end = (Event(enable_timing=True) for _ in range(2))
        self.record, self.wait, self.elapsed = Event.record, Event.synchronize, Event.elapsed_time
        facts = torch.cuda.get_device_properties(self.stream.device)
        self.hertz = facts.clock_rate * 1e3
        size = max(LEAST_FLUSH, 3 * getattr(facts, "L2_cache_size", 0))
        self.flush = torch.empty(size, dtype=torch.uint8, device=name)
        self.halves = self.flush.chunk(2)
        self.fill, self.copy = self.flush.fill_, self.halves[1].copy_
        self.settle()
        self.idle = min(self.joining() for _ in range(IDLE_TRIES))

    def give(self, tensor: Tensor) -> Tensor:
        """Copies a tensor to the GPU, unless it is there already."""
        return tensor if tensor.is_cuda else tensor.to(self.name)

    def settle(self) -> None:
        self.synchronize()

    def empty(self) -> None:
        self.synchronize()
        self.empty_cache()

    def joining(self) -> int:
        start = self.clock()
        self.synchronize()
        return self.clock() - start

    def timed(self, call: Callable[[], Any], sleep_ns: float) -> Timed:
        """Returns (result, ns, host ns in the call). Work on other streams that outlasts this stream's end event
        counts, too. The waiting kernel delays only this stream. Without it (0), the GPU is idle when the call
        begins, so the time includes the host's share."""
        self.fill(1)
        self.copy(self.halves[0])
        if sleep_ns:
            self.sleep(int(min(sleep_ns, MOST_SLEEP_NS) * 1e-9 * self.hertz))
        else:
            self.synchronize()
        self.record(self.begin, self.stream)
        start = self.clock()
        out = call()
        host = self.clock() - start
        self.record(self.end, self.stream)
        self.wait(self.end)
        late = max(0.0, self.joining() - self.idle)
        return out, self.elapsed(self.begin, self.end) * 1e6 + late, float(host)
