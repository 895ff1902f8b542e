# SPDX-License-Identifier: Apache-2.0
"""The GPU's lock. The process that holds it measures; other processes may build modules at the same time.

The caller opens the lock file (flock), which all cutegen processes on the machine share.
"""

from __future__ import annotations

import fcntl
import inspect
import os
import threading
import time
from typing import Any

SLOT = 4  # the lock file's descriptor
ASK_AGAIN_S = 0.002
BRIEF_OWN = {"estimation_iters": 2, "max_benchmark_duration": 10}  # ms
BRIEF_TRITON = {"warmup": 5, "rep": 25}  # ms
SIDE_BY_SIDE = 2  # threads of each worker, because several run in parallel


class Slot:
    """A lock that one thread may take repeatedly. Without a file it is always free."""

    def __init__(self) -> None:
        self.file: int | None = None
        self.depth, self.turn = 0, threading.RLock()
        self.guarded = False
        self.for_opening = False  # once baselines are open, the caller locks instead

    def take_over(self, descriptor: int) -> None:
        self.file = os.dup(descriptor)  # processes that a task file starts do not inherit it
        os.close(descriptor)

    def opened(self) -> None:
        """Call it when the baselines are open, because then the caller holds the lock."""
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
        """Makes torch.compile take the lock for autotuning and tune more briefly, because other workers wait for the
        GPU."""
        if self.file is None or self.guarded:
            return
        self.guarded = True
        from torch._inductor.runtime.benchmarking import benchmarker

        plain = benchmarker.benchmark_gpu
        own = "max_benchmark_duration" in inspect.signature(plain).parameters
        brief = BRIEF_OWN if own else BRIEF_TRITON
        if self.for_opening:  # for a certificate, which has few workers
            brief = {}

        def behind_the_lock(*args: Any, **kwargs: Any) -> Any:
            with self:
                out = plain(*args, **{**kwargs, **brief})
            if self.file is not None:  # hundreds of measurements follow, so let waiting processes take the lock
                time.sleep(2 * ASK_AGAIN_S)
            return out

        benchmarker.benchmark_gpu = behind_the_lock  # type: ignore[method-assign]
