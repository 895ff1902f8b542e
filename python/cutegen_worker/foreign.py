# SPDX-License-Identifier: Apache-2.0
"""Runs a third-party solution, `class ModelNew` of one file. Another process judges it.

From the import of its file on, the solution controls this process. The process gets inputs and returns
outputs. It never gets a truth, a tolerance or the seed of an input, and its replies are only claims.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import re
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from .errors import WorkerError, first_line, place
from .foreign_device import Given, Gpu, Host
from .names import DTYPES, Inputs, flatten, state_tensors
from .source import Source
from .state import move_state, seed_all
from .wire import Channel, Closed
from .wire import Json

SOCKET = 3
MODULE = "cutegen_answer"
NO_GPU = re.compile(r"cuda|triton|nvcc|nvidia|\bgpus?\b", re.IGNORECASE)
LACKS = re.compile(r"CUDA_HOME environment variable is not set|Ninja is required", re.IGNORECASE)
NO_MEMORY = re.compile(r"can't allocate memory|out of memory", re.IGNORECASE)
COMPILER = re.compile(r"^.*\berror: .*$", re.MULTILINE)
PLAIN = (torch.Tensor, torch.nn.Parameter)
REMEDY = "define class ModelNew(torch.nn.Module); cutegen constructs it with the task's get_init_inputs()"


class Failed(Exception):
    """What the solution did, for its verdict: `raised`, `rule` (broke a rule), `needs_gpu`, or `lacks` (needs
    something that is not installed)."""

    def __init__(self, what: str, where: str = "", kind: str = "raised") -> None:
        super().__init__(what)
        self.what, self.where, self.kind = what, where, kind

    def json(self) -> dict[str, str]:
        return {"kind": self.kind, "what": self.what[:1000], "where": self.where[:300]}


class Task:
    """The reference's file, which defines ModelNew's constructor arguments and how to pass inputs."""

    def __init__(self, source: str, file: str) -> None:
        self.source = Source(source, file)

    def run(self, constants: dict[str, int]) -> None:
        self.module = self.source.run(constants)

    def arguments(self) -> Any:
        return getattr(self.module, "get_init_inputs", list)()

    def inputs(self) -> Inputs:
        forward = types.MethodType(self.module.Model.forward, object())
        return Inputs(self.module.get_inputs(), types.SimpleNamespace(forward=forward),
                      self.source.file)


class Answer:
    task: Task
    inputs: Inputs
    counterparts: dict[str, str]  # tensor of the reference -> tensor of ModelNew

    def __init__(self) -> None:
        self.device: Host | Gpu = Host()
        self.given = Given()
        self.model: Any = None
        self.last: Any = None
        self.own, self.folder = os.getpid(), os.environ["CUTEGEN_ANSWER"]
        self.path = self.file = ""

    # --- requests ---------------------------------------------------------------------------------

    def hello(self, request: Json) -> Json:
        missing = ""
        if request["device"]:
            from . import gpu

            gpu.start(request["device"])
            self.device = Gpu(request["device"], request["tf32"],
                              request.get("tf32_convolutions", False))
            missing = gpu.lock(bytes.fromhex(request["filter"]))
        torch.set_grad_enabled(False)
        version = ".".join(map(str, sys.version_info[:3]))
        return {"version": f"torch {torch.__version__}, Python {version}", "missing": missing}

    def load(self, request: Json) -> Json:
        self.file = request["file"]
        self.task = Task(request["task_source"], request["task_file"])
        os.makedirs(self.folder, 0o700, exist_ok=True)
        self.path = os.path.join(self.folder, "answer.py")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(request["source"])
        os.chdir(self.folder)
        spec = importlib.util.spec_from_file_location(MODULE, self.path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE] = module
        with self.blame("its import"):
            spec.loader.exec_module(module)
        self.ModelNew: Any = getattr(module, "ModelNew", None)
        if self.ModelNew is None:
            raise Failed("the file has no ModelNew: " + REMEDY, self.file)
        if not (isinstance(self.ModelNew, type) and issubclass(self.ModelNew, torch.nn.Module)):
            raise Failed("ModelNew is not a torch.nn.Module: " + REMEDY, self.file)
        return {}

    def make_model(self, request: Json) -> Json:
        """Constructs ModelNew like the reference and copies the reference's values into it."""
        self.model = self.last = None
        gc.collect()
        self.device.empty()
        state, _, _ = self.given.tensors(request)
        self.returns = request.get("returns", [])
        with self.blame("ModelNew()"):
            torch.set_default_device(self.device.name if request["on_gpu"] else None)
            try:
                seed_all(request["seed"])
                self.task.run(request["constants"])
                made = self.task.arguments()
                keyword = isinstance(made, dict)
                self.model = self.ModelNew(**made) if keyword else self.ModelNew(*made)
                inputs = self.task.inputs()
            finally:
                torch.set_default_device(None)
            if not isinstance(self.model, torch.nn.Module):
                raise Failed("ModelNew() does not return a torch.nn.Module", self.file)
            move_state(self.model, self.device.name)
            self.model.train(request["train_mode"])
            kept, self.counterparts = copy_in(self.model, state)
        del state
        self.given.drop()
        before = {n: t.detach().clone() for n, t in self.mutated_state(request.get("mutated", []))}
        host = self.warm_up(inputs, request["warm_up"])
        for name, t in self.mutated_state(before):
            t.data.copy_(before[name])
        inputs.args, inputs.kwargs = inputs.map(lambda _, t: t.to("meta"))
        inputs.leaves = [(n, t.to("meta") if isinstance(t, torch.Tensor) else t)
                         for n, t in inputs.leaves]
        self.inputs = inputs  # keeps only their structure
        return {"kept": kept[:16], "host_ns": host}

    def mutated_state(self, names: Iterable[str]) -> Iterator[tuple[str, Tensor]]:
        """Yields (name, tensor) of ModelNew's parameters and buffers that correspond to these of the reference."""
        own: dict[str | None, Tensor] = {n: t for n, _, t in state_tensors(self.model)}
        for name in names:
            tensor = own.get(self.counterparts.get(name))
            if tensor is not None:
                yield name, tensor

    def warm_up(self, inputs: Inputs, times: int) -> float:
        """Calls the solution on separate inputs. Returns the host's time of the last call."""
        host = 0.0
        if times:
            args, kwargs = inputs.map(lambda _, t: t.to(self.device.name))
        for _ in range(times):
            with self.blame("forward()"):
                self.last, _, host = self.device.timed(lambda: self.call(args, kwargs), 0)
        return host

    def run(self, request: Json) -> Json:
        values, outputs, final = self.given.tensors(request)
        given = {name: self.device.give(t) for name, t in values.items()}
        if request["control"]:  # a control call has no inputs
            out, ns, _ = self.device.timed(lambda: self.last, request["sleep_ns"])
        else:
            args, kwargs = self.inputs.map(lambda name, _: given[name])
            with self.blame("forward()"):
                out, ns, _ = self.device.timed(lambda: self.call(args, kwargs), request["sleep_ns"])
        with self.blame("its result"):
            self.put(out, outputs)
            for name, t in values.items():  # copies the final values back from the GPU
                if given[name] is not t:
                    t.copy_(given[name])
            self.put_state(final)
            self.device.settle()
        args, kwargs = None, {}
        del values, outputs, given, out, final
        self.given.drop()
        return {"ns": ns}

    # --- the solution -----------------------------------------------------------------------------

    def call(self, args: Any, kwargs: dict[str, Any]) -> Any:
        return self.model(*args, **kwargs)

    def put_state(self, places: dict[str, Tensor]) -> None:
        """Copies the final values of mutated parameters and buffers to the evaluator's memory."""
        own = dict(self.mutated_state(places))
        for name, view in places.items():
            if name not in own:
                raise Failed(f"ModelNew has no counterpart of '{name}', which the reference mutates", self.file)
            wrong = self.wrong_form(own[name], view)
            if wrong:
                raise Failed(f"the mutated '{name}' has become {wrong}", self.file)
            view.copy_(own[name])

    def put(self, out: Any, places: dict[str, Tensor]) -> None:
        """Copies what forward() returned to the evaluator's memory. Mutated tensors are already there."""
        found = [t for _, t in flatten("out", out) if isinstance(t, torch.Tensor)]
        if len(found) == len(self.returns):
            found = [t for name, t in zip(self.returns, found) if name in places]
        if not places:
            return
        if len(found) != len(places):
            got = f"{len(found)} tensors" if found else type(out).__name__
            many = "a tensor" if len(places) == 1 else f"{len(places)} tensors"
            raise Failed(f"forward() returns {got}, not {many}", self.file)
        for t, view in zip(found, places.values()):
            wrong = self.wrong_form(t, view)
            if wrong:
                raise Failed(f"forward() returns {wrong}", self.file)
            view.copy_(t)

    def wrong_form(self, t: Tensor, view: Tensor) -> str:
        if type(t) not in PLAIN:
            raise Failed(f"forward() returns a {type(t).__name__}, a subclass of torch.Tensor: values "
                         "have to be there when it ends", self.file, "rule")
        if t.shape != view.shape:
            return f"shape {list(t.shape)}, not {list(view.shape)}"
        if t.dtype != view.dtype:
            return f"dtype {DTYPES.get(t.dtype, t.dtype)}, not {DTYPES[view.dtype]}"
        if t.device.type != torch.device(self.device.name).type:
            return f"a tensor on {t.device}, not on {self.device.name}"
        return ""

    @contextlib.contextmanager
    def blame(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Failed:
            raise
        except BaseException as error:  # noqa: BLE001 - the solution may raise anything
            traceback.print_exc(limit=-4)
            raise self.failure(error, doing) from None

    def failure(self, error: BaseException, doing: str) -> Failed:
        where = place(error, self.path).replace(self.path, self.file) if self.path else ""
        name, text = type(error).__name__, first_line(error)
        if compiler := COMPILER.search(str(error)):  # the compiler's error is not in the first line
            text = f"{text[:120]}: {compiler.group().strip()[:300]}"
        if isinstance(error, SystemExit):
            return Failed(f"{doing} ends the program (sys.exit)", where)
        if isinstance(error, MemoryError) or NO_MEMORY.search(text):
            what = f"{doing} needs more memory than a solution may use: {text or name}"
            return Failed(what, where)
        if self.device.name == "cpu" and NO_GPU.search(f"{type(error).__module__} {text}"):
            what = f"{doing} needs a GPU (--device cuda:0): {name}: {text}"
            return Failed(what, where, "needs_gpu")
        if isinstance(error, ModuleNotFoundError) or LACKS.search(text):
            what = f"{doing} needs something that is not installed here: {name}: {text}"
            return Failed(what, where, "lacks")
        return Failed(f"{doing} raises {name}" + (f": {text}" if text else ""), where)

    def answer(self, request: Json, descriptors: list[int]) -> Json:
        try:
            if request["type"] == "memory":
                self.given.take(request, descriptors)
                return {}
            return HANDLERS[request["type"]](self, request)
        except Failed as failed:
            return {"failed": failed.json()}
        except WorkerError as error:
            return {"failed": Failed(error.message, error.where).json()}
        except BaseException as error:  # noqa: BLE001 - the solution may have broken anything here
            traceback.print_exc(limit=-4)
            return {"failed": self.failure(error, "the solution's process").json()}


HANDLERS = {"hello": Answer.hello, "load": Answer.load,
            "make_model": Answer.make_model, "run": Answer.run}


def copy_in(model: torch.nn.Module, state: dict[str, Tensor]) -> tuple[list[str], dict[str, str]]:
    """Copies the reference's values into tensors of the same name and shape, and then, if all shapes agree, matches
    the rest in order. Returns the names of tensors that keep their own values, and {reference's name: own name}
    of the others."""
    own = [(name, t) for name, _, t in state_tensors(model)]
    rest = {name.removeprefix("self."): t for name, t in state.items()}
    full = {name.removeprefix("self."): name for name in state}
    left, matched = [], {}
    for name, t in own:
        if name in rest and rest[name].shape == t.shape:
            t.data.copy_(rest.pop(name))
            matched[full[name]] = name
        else:
            left.append((name, t))
    if [t.shape for _, t in left] == [t.shape for t in rest.values()]:
        for (name, t), (other, value) in zip(left, rest.items()):
            t.data.copy_(value)
            matched[full[other]] = name
        return [], matched
    return [name[:100] for name, _ in left], matched


def main() -> None:
    fd = os.dup(SOCKET)  # processes that the solution starts do not inherit it
    os.close(SOCKET)
    channel, answer = Channel(fd), Answer()
    getpid, leave = os.getpid, os._exit
    while True:
        try:
            request, descriptors = channel.receive_all()
        except (Closed, OSError):
            leave(0)
        reply = answer.answer(request, descriptors)
        for given in descriptors:
            os.close(given)
        if getpid() != answer.own:
            leave(0)  # the solution forked, and only the first process replies
        channel.send({**reply, "id": request["id"]})
