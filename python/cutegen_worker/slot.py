# SPDX-License-Identifier: Apache-2.0
"""The GPU's slot: who holds its lock measures; everybody else builds meanwhile.

The lock is a file that the caller opened (flock), the same for every process of cutegen on the machine.
"""

from __future__ import annotations

import fcntl
import inspect
import os
import threading
import time
from typing import Any

SLOT = 4  # descriptor at which the file comes
ASK_AGAIN_S = 0.002
BRIEF_OWN = {"estimation_iters": 2, "max_benchmark_duration": 10}  # ms
BRIEF_TRITON = {"warmup": 5, "rep": 25}  # ms
SIDE_BY_SIDE = 2  # threads of a worker that has others beside it


class Slot:
    """Held once or several times by one thread; without a file it is always free."""

    def __init__(self) -> None:
        self.file: int | None = None
        self.depth, self.turn = 0, threading.RLock()
        self.guarded = False
        self.for_opening = False  # the caller measures from then on, and holds the lock itself

    def take_over(self, descriptor: int) -> None:
        self.file = os.dup(descriptor)  # not inherited by what a task file starts
        os.close(descriptor)

    def opened(self) -> None:
        """Baselines are open."""
        if self.for_opening and self.file is not None:
            os.close(self.file)
            self.file = None

    def __enter__(self) -> Slot:
        self.turn.acquire()
        self.depth += 1
        while self.depth == 1 and self.file is not None:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(ASK_AGAIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0 and self.file is not None:
            fcntl.flock(self.file, fcntl.LOCK_UN)
        self.turn.release()

    def guard_autotuning(self) -> None:
        """What torch.compile times while it builds, it times behind the lock, and more briefly: the GPU
        is what the workers wait for."""
        if self.file is None or self.guarded:
            return
        self.guarded = True
        from torch._inductor.runtime.benchmarking import benchmarker

        plain = benchmarker.benchmark_gpu
        own = "max_benchmark_duration" in inspect.signature(plain).parameters
        brief = BRIEF_OWN if own else BRIEF_TRITON
        if self.for_opening:  # of a certificate, which few share
            brief = {}

        def behind_the_lock(*args: Any, **kwargs: Any) -> Any:
            with self:
                out = plain(*args, **{**kwargs, **brief})
            if self.file is not None:  # hundreds follow each other: who waits gets his turn
                time.sleep(2 * ASK_AGAIN_S)
            return out

        benchmarker.benchmark_gpu = behind_the_lock  # type: ignore[method-assign]
