# SPDX-License-Identifier: Apache-2.0
"""The worker's loop: one request at a time from the socket at descriptor 3."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable

from .slot import SIDE_BY_SIDE, SLOT
from .wire import Answer, Channel, Closed, Json
from .worker import Worker

SOCKET = 3


def hello(request: Json, worker: Worker) -> Answer:
    gc.disable()  # the import creates a million objects and no garbage
    import torch

    from . import describe  # noqa: F401 - imported here, so that no task waits for it

    gc.freeze()
    gc.enable()

    version = ".".join(map(str, sys.version_info[:3]))
    reply = {"version": f"torch {torch.__version__}, Python {version}"}
    if request.get("device"):
        from . import gpu

        gpu.start(request["device"])
        reply["cudnn"] = gpu.cudnn_version()
        if request.get("slot"):
            worker.slot.take_over(SLOT)
            worker.slot.for_opening = request["slot"] == "opening"
            torch.set_num_threads(SIDE_BY_SIDE)
        reply["missing"] = "this worker starts compilers"
        if request["filter"]:
            reply["missing"] = gpu.lock(bytes.fromhex(request["filter"]))
    return reply, None


def describe(request: Json, _: Worker) -> Answer:
    from .describe import describe as run

    return {"task": run(request)}, None


def shapes(request: Json, worker: Worker) -> Answer:
    from .describe import describe_shapes

    return describe_shapes(request, worker), None


def make_set(request: Json, _: Worker) -> Answer:
    from .values import make_set as run

    return run(request)


def plan_excerpt(request: Json, _: Worker) -> Answer:
    from . import excerpt

    return excerpt.plan(request), None


def make_excerpt(request: Json, _: Worker) -> Answer:
    from . import excerpt

    return excerpt.make(request)


def take_memory(request: Json, descriptors: list[int], worker: Worker) -> Answer:
    from . import official

    return official.take_memory(request, descriptors, worker.memory), None


def open_baselines(request: Json, worker: Worker) -> Answer:
    from .baseline import open_baselines as run

    return run(request, worker)


def add_baseline(request: Json, worker: Worker) -> Answer:
    from .baseline import add_baseline as run

    return run(request, worker)


def run_baseline(request: Json, worker: Worker) -> Answer:
    from .baseline import run_baseline as run

    return run(request, worker)


def close_baselines(request: Json, worker: Worker) -> Answer:
    from .baseline import close_baselines as run

    return run(request, worker)


def time_baseline(request: Json, worker: Worker) -> Answer:
    from .baseline import time_baseline as run

    return run(request, worker)


def fill(request: Json, worker: Worker) -> Answer:
    from . import official

    return official.fill(request, worker.memory), None


HANDLERS: dict[str, Callable[[Json, Worker], Answer]] = {
    "hello": hello, "describe": describe, "shapes": shapes, "make_set": make_set, "fill": fill,
    "plan_excerpt": plan_excerpt, "make_excerpt": make_excerpt,
    "open_baselines": open_baselines, "add_baseline": add_baseline,
    "run_baseline": run_baseline, "time_baseline": time_baseline,
    "close_baselines": close_baselines,
}


def answer(request: Json, descriptors: list[int], worker: Worker) -> Answer:
    """Returns (reply, descriptor or None). Never raises."""
    try:
        if request["type"] == "memory":
            return take_memory(request, descriptors, worker)
        return HANDLERS[request["type"]](request, worker)
    except BaseException as error:  # noqa: BLE001 - reported to the caller
        return {"error": as_json(error)}, None


def as_json(error: BaseException) -> Json:
    if hasattr(error, "json"):
        return error.json()
    if isinstance(error, ImportError):
        return {"kind": "world", "message": f"this Python cannot import torch: {error}",
                "where": "", "remedy": "install torch, or name another interpreter: --python"}
    traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return {
        "kind": "internal",
        "message": f"the torch worker failed: {type(error).__name__}: {error}",
        "where": f"{os.path.basename(frame.filename)}:{frame.lineno}",
        "remedy": "please report it",
    }


def main() -> None:
    fd = os.dup(SOCKET)  # processes that a task file starts do not inherit it
    os.close(SOCKET)
    channel, worker = Channel(fd), Worker()
    owner = os.getpid()
    while True:
        try:
            request, descriptors = channel.receive_all()
        except (Closed, OSError):
            return
        reply, memory = answer(request, descriptors, worker)
        for given in descriptors:
            os.close(given)
        if os.getpid() != owner:
            os._exit(0)  # the task file forked: only the worker itself replies
        try:
            channel.send(reply, [memory] if memory is not None else [])
        except ValueError as error:
            channel.send({"error": {"kind": "user", "message": str(error), "where": "",
                                    "remedy": "the module has too many operations"}})
        finally:
            if memory is not None:
                os.close(memory)
