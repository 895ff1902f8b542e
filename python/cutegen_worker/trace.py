# SPDX-License-Identifier: Apache-2.0
"""One run of a task's module on meta tensors: names, shapes, calls."""

from __future__ import annotations

import math
import re
import types
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch
import torch.fx.experimental.symbolic_shapes  # imported early: meta kernels need it, and a task may break sys.path
from torch import Tensor

from . import fused, graph, lazy, mutated, reads
from .agree import disagreement
from .checked import CONVOLUTION
from .classify import workload
from .errors import WorkerError, blame
from .names import Inputs, dtype_name, flatten, scalar_json, scalars, state_tensors
from .record import Call, Recorder, Tensors, place_of, real_constants, to_meta
from .recurrent import as_single_calls
from .state import host_generators
from .source import clean_state
from .source import Source
from .wire import Json

lazy.install()
REDRAWN = ("running_mean", "running_var")  # buffers that draw.redraw() redraws
SIZES = "check the sizes in get_inputs() and get_init_inputs()"
VALUES = ("cannot be called on meta tensors", "Cannot copy out of meta tensor",
          "Tensor.item()", "data-dependent", "on meta tensors", "convert meta device type tensor")
# What PyTorch says of operators such as nonzero, whose result has as many elements as the values decide.
SELECTIONS = ("register_meta function for", "operator with Meta tensors", "meta tensor without output_size")


def plain(error: WorkerError) -> None:
    """Replaces PyTorch's messages about meta tensors, which the user's file does not name."""
    if any(s in error.message for s in SELECTIONS):
        found = re.search(r"(?:aten::_?|torch\.)(\w+)|cannot (\w+)", error.message)
        name = next((g.rstrip("0123456789") for g in found.groups() if g), "") if found else ""
        error.message = f"PyTorch cannot tell the size of a result of {name or 'an operator'} without its values"
        error.remedy = "keep all elements and use a mask, for example torch.where instead of x[mask]"
    elif any(v in error.message for v in VALUES):
        error.message = "forward() needs the values of tensors, not only their shapes"
        error.remedy = "avoid .item(), .tolist(), .numpy() and branches on tensor values"


def side_by_side(convolution: Call) -> bool:
    """Whether the windows of a convolution lie side by side."""
    _, weight, _, stride, padding, dilation, transposed = convolution.args[:7]
    window = list(weight.shape[2:])
    return (not transposed and list(stride) == window and math.prod(window) > 1 and not any(padding)
            and all(d == 1 for d in dilation))


def build(module: types.ModuleType, file: str) -> tuple[torch.nn.Module, Inputs]:
    """Constructs the Model of an executed file, and its inputs."""
    make: Callable[[], Any] = getattr(module, "get_init_inputs", lambda: [])
    with blame(file, "get_init_inputs()", SIZES):
        arguments = make()
    if not isinstance(arguments, (list, tuple, dict)):
        raise WorkerError(f"get_init_inputs() returns {type(arguments).__name__}, not a list", file,
                          "return the arguments of Model in a list")
    with blame(file, "Model()", "check __init__ and get_init_inputs()"):
        model = module.Model(**arguments) if isinstance(arguments, dict) else module.Model(*arguments)
    with blame(file, "get_inputs()", SIZES):
        inputs = module.get_inputs()
    return model, Inputs(inputs, model, file)


class Trace:
    """What one run on meta tensors shows."""

    def __init__(self, source: Source, constants: dict[str, int], train: bool) -> None:
        self.file = source.file
        self.notes: list[str] = []
        self.warnings: list[str] = []
        with clean_state(source.file), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            self.recorder = Recorder(source.file)
            with self.recorder, real_constants():
                self.run(source, constants, train)
            if self.recorder.hidden_write:
                self.run_functional(source, constants, train)
            self.measure()

    def run(self, source: Source, constants: dict[str, int], train: bool, functional: bool = False) -> None:
        module = source.run(constants)
        model, inputs = build(module, source.file)
        model.train(train)
        self.prepare(model, inputs)
        args, kwargs = inputs.map(lambda name, t: self.tensors[name][1])
        call: Callable[..., Any] = model
        if functional:
            call, args, kwargs = self.functional(model), (self.state(), args, kwargs), {}
        self.outside = set(self.recorder.outside)
        self.recorder.recording = True
        before = host_generators()
        try:
            with (blame(source.file, "forward()", SIZES), as_single_calls(self.recorder),
                  fused.noted(self.recorder, module)):
                out = call(*args, **kwargs)
        except WorkerError as error:
            plain(error)
            raise
        finally:
            self.recorder.recording = False
        self.draws_on_host = host_generators() != before
        self.check_sizes()
        if not functional:
            self.note_mutated(model, inputs, out)
        self.model = model
        self.collect(model, inputs, out)
        if not functional:
            self.as_written = self.recorder, self.tensors, self.final, self.outputs

    def check_sizes(self) -> None:
        """Raises what a call raises when it runs, if its meta kernel accepts sizes that must agree."""
        for call in self.recorder.calls:
            if (why := disagreement(call)) is not None:
                raise WorkerError(f"forward() cannot run: {why}", self.file, SIZES)

    def note_mutated(self, model: torch.nn.Module, inputs: Inputs, out: Any) -> None:
        """Records which tensors forward() writes or replaces, and which of its results are such tensors."""
        names = {n for n, _ in inputs.tensors()}
        new, changed = mutated.replaced(self.recorder, model, self.tensors, names)
        self.mutated = mutated.find(self.recorder, self.tensors, new)
        self.final = {n: new.get(n, self.tensors[n][1]) for n in self.mutated}
        for name in changed:
            self.notes.append(f"forward() replaces '{name}' by a tensor of another shape or dtype; cutegen "
                              "does not check its new value")
        leaves = [t for _, t in flatten("out", out) if isinstance(t, torch.Tensor)]
        self.aliases = [next((n for n in sorted(self.final) if mutated.same_memory(t, self.final[n])), None)
                        for t in leaves]
        stale = self.recorder.stale
        if any(id(t) in stale for t in [*self.final.values(), *leaves]):
            self.recorder.hidden_write = True

    def state(self) -> dict[str, Tensor]:
        """Parameters and buffers by name. A write to a copy of one needs a functional tensor, too."""
        return {n: t for n, (role, t) in self.tensors.items() if role != "input"}

    @staticmethod
    def functional(model: torch.nn.Module) -> Callable[..., Any]:
        def call(state: dict[str, Tensor], args: Any, kwargs: dict[str, Any]) -> Any:
            if state:
                return torch.func.functional_call(model, state, tuple(args), kwargs)
            return model(*args, **kwargs)

        return torch.func.functionalize(call)

    def run_functional(self, source: Source, constants: dict[str, int], train: bool) -> None:
        """Runs again with functionalization, which shows writes through views."""
        first, self.recorder = self.recorder, Recorder(source.file)
        kept = dict(self.__dict__)
        try:
            with self.recorder, real_constants():
                self.run(source, constants, train, functional=True)
        except WorkerError:
            self.__dict__.update(kept)
            self.recorder = first
            self.warnings.append("the graph does not show writes through views of a tensor as such")

    def prepare(self, model: torch.nn.Module, inputs: Inputs) -> None:
        """Moves every tensor of the task to meta and names it."""
        model.to("meta")
        self.tensors: Tensors = {}
        self.promised: dict[str, int] = {}
        for name, tensor in inputs.tensors():
            self.add(name, "input", tensor if tensor.is_meta else to_meta(tensor))
        for name, role, tensor in state_tensors(model):
            if name in self.tensors:
                name = "self." + name
                self.notes.append(f"the {role} '{name}' has the prefix 'self.' because an input has the same name")
            self.add(name, role, tensor)

    def add(self, name: str, role: str, tensor: Tensor) -> None:
        dtype_name(tensor, f"{role} '{name}'", self.file)
        self.tensors[name] = role, tensor
        self.recorder.used.add(name)
        self.recorder.bind(tensor, name)
        self.promised[name] = self.recorder.promises.elements(tensor)

    def collect(self, model: torch.nn.Module, inputs: Inputs, out: Any) -> None:
        leaves = list(flatten("out", out))
        found = [(n, t) for n, t in leaves if isinstance(t, torch.Tensor)]
        if not found and not self.mutated:
            raise WorkerError("forward() returns no tensor", self.file, "return a tensor")
        if len(leaves) > 1:
            found = [(f"out.{i}", t) for i, (_, t) in enumerate(found)]
        if len(leaves) != len(found) and out is not None:
            self.notes.append("forward() also returns values that are not tensors; cutegen ignores them")
        self.returns = [alias or name for alias, (name, _) in zip(self.aliases, found)]
        self.outputs = [leaf for alias, leaf in zip(self.aliases, found) if alias is None]
        for name, tensor in self.outputs:
            dtype_name(tensor, f"output '{name}'", self.file)
        names = self.recorder.names
        self.output_values = [self.value_of(t) for _, t in self.outputs]
        final = [(n, self.final[n] if id(self.final[n]) in names else self.tensors[n][1]) for n in sorted(self.mutated)]
        self.final_values = [(names[id(t)], n, t) for n, t in final]
        self.calls = graph.alive(self.recorder.calls, [v for v, _, _ in self.results()])
        self.scalars = scalars(model)
        self.arguments = [(n, v) for n, v in inputs.leaves
                          if isinstance(v, (bool, int, float, str))]
        self.types = {type(m).__name__ for m in model.modules()}

    def results(self) -> list[tuple[str, str, Tensor]]:
        """(value, name, tensor) of the outputs, then of the final values of mutated tensors."""
        outputs = [(v, n, t) for v, (n, t) in zip(self.output_values, self.outputs)]
        return outputs + self.final_values

    def measure(self) -> None:
        self.least_bytes = int(self.count_bytes())
        self.flops = float(sum(graph.count(c) for c in self.calls))

    def value_of(self, tensor: Tensor) -> str:
        name = self.recorder.names.get(id(tensor))
        if name is None:
            name = self.recorder.unique("constant")
            self.recorder.bind(tensor, name)
            self.recorder.constants.append((name, tensor))
        return name

    def count_bytes(self) -> int:
        """The bytes that every correct program must read and write."""
        written = [graph.size(t.shape, t.dtype) for _, t in self.outputs]
        if self.mutated:
            changes = mutated.Changes(*self.as_written)
            needed = changes.reads()
            written += changes.writes().values()
        else:
            needed = reads.elements(self.calls, {n: place_of(t) for n, (_, t) in self.tensors.items()},
                                    [place_of(t) for _, t in self.outputs])
        read = sum(min(count, self.unknown(n)) * self.tensors[n][1].dtype.itemsize
                   for n, count in needed.items())
        return read + sum(written)

    def unknown(self, name: str) -> int:
        """The number of elements whose values the task does not promise; see promises.py and draw.redraw()."""
        role, tensor = self.tensors[name]
        count = self.promised[name]
        redrawn = role == "parameter" or name in self.mutated or name.endswith(REDRAWN)
        return tensor.numel() if redrawn and not count else count

    def shapes(self) -> dict[str, list[int]]:
        shapes = {n: list(t.shape) for n, (_, t) in self.tensors.items()}
        shapes.update((n, list(t.shape)) for n, t in self.outputs)
        return shapes

    def elements(self) -> int:
        return sum(t.numel() for _, t in self.tensors.values()) + sum(
            t.numel() for _, t in self.outputs
        )

    def steps(self) -> int:
        """The most steps of any convolution: results per channel (batch times image) times kernel positions."""
        calls = (call for call in self.calls if call.func is CONVOLUTION)
        return max((call.outs[0][0].numel() // max(1, call.outs[0][0][1]) * math.prod(call.args[1].shape[2:])
                    for call in calls), default=0)

    def channels(self) -> dict[int, int]:
        """{number of channels: least number for each group}, for all inputs of convolutions and group norms, and for
        all results of convolutions.

        A group norm of one element returns a constant. In a group of two elements that are nearly equal, float32
        rounding decides the whole result, so a group without spatial axes needs four.
        """
        out: dict[int, int] = {}
        for call in self.calls:
            if call.func in (CONVOLUTION, torch.ops.aten.native_group_norm.default):
                for shape in (call.args[0].shape, call.outs[0][0]):
                    out[shape[1]] = max(out.get(shape[1], 2), 4 if math.prod(shape[2:]) == 1 else 2)
        return out

    def blocks(self) -> dict[int, int]:
        """{size of an input: the number that divides it}, for inputs that convolutions divide into windows side by
        side, as a patch embedding does. Some programs compute such a convolution only if windows cover the image, so
        test shapes should keep these sizes multiples."""
        out: dict[int, int] = {}
        for size, window in self.side_by_side():
            for image in self.image_sizes():
                if image % size == 0 and size % window == 0:
                    out[image] = math.lcm(out.get(image, 1), image // size * window)
        return out

    def ragged(self) -> dict[int, int]:
        """{size of an input: size of a window}, where windows side by side do not cover the input."""
        images = self.image_sizes()
        return {size: window for size, window in self.side_by_side() if size in images and size % window}

    def image_sizes(self) -> set[int]:
        return {size for role, t in self.tensors.values() if role == "input" for size in t.shape[2:]}

    def side_by_side(self) -> Iterator[tuple[int, int]]:
        """Yields the size of the input and of the window along each axis of the convolutions whose windows lie side by
        side."""
        for call in self.calls:
            if call.func is CONVOLUTION and side_by_side(call):
                for size, window in zip(call.args[0].shape[2:], call.args[1].shape[2:]):
                    if size > 0:
                        yield size, window

    def hollow(self) -> bool:
        """Whether some call returns an empty tensor, for example pooling with a window larger than its input."""
        return any(0 in shape for call in self.calls for shape, _ in call.outs)

    def signature(self) -> tuple[Any, ...]:
        if not hasattr(self, "signature_"):
            floats = {k: v for k, v in self.scalars.items() if isinstance(v, (float, str, bool))}
            written = sorted(self.mutated), self.returns
            self.signature_ = graph.signature(self.calls), floats, self.arguments, written
        return self.signature_

    def alike(self, other: Trace) -> bool:
        """Whether `other` is the same program at other sizes."""
        return self.signature() == other.signature() and graph.broadcast_alike(
            graph.broadcasts(self.calls), graph.broadcasts(other.calls))

    def case(self, name: str, kind: str, constants: dict[str, int], weight: float = 1) -> Json:
        return {
            "name": name,
            "kind": kind,
            "weight": weight,
            "constants": constants,
            "tensors": self.shapes(),
            "flops": self.flops,
            "least_bytes": self.least_bytes,
        }

    def tensor_list(self) -> list[Json]:
        def item(name: str, role: str, t: Tensor) -> Json:
            return {
                "name": name,
                "role": role,
                "dtype": dtype_name(t, name, self.file),
                "shape": list(t.shape),
                "mutated": name in self.mutated,
            }

        found = [item(n, role, t) for n, (role, t) in self.tensors.items()]
        return found + [item(n, "output", t) for n, t in self.outputs]

    def graph(self, others: Sequence[Trace] = ()) -> Json:
        """`others`: traces of the module at other shapes, which distinguish sizes from constants."""
        used = {r.name for c in self.calls for r in c.refs} | set(self.output_values)
        holders = [graph.value(n, t.shape, t.dtype) for n, (_, t) in self.tensors.items()
                   if n in used]
        written = []
        for name, t in self.recorder.constants:
            if name in used and (node := graph.constant(name, t, [o.recorder.constants for o in others])):
                written.append(node)
            elif name in used:
                holders.append(graph.value(name, t.shape, t.dtype))
                self.warnings.append(f"'{name}' is a tensor that is neither input nor parameter")
        return {
            "placeholders": holders,
            "nodes": written + self.nodes(holders, others),
            "outputs": self.output_values,
            **({"finals": finals} if (finals := {n: v for v, n, _ in self.final_values if v != n}) else {}),
            "warnings": self.warnings,
        }

    def nodes(self, holders: list[Json], others: Sequence[Trace]) -> list[Json]:
        names = [h["name"] for h in holders if h["name"] in self.tensors]
        sizes = graph.sizes((self.calls, self.shapes()), [(t.calls, t.shapes()) for t in others], names)
        calls = [t.calls for t in others if len(t.calls) == len(self.calls)]
        made = [graph.settled(graph.node(c), c, calls, i) for i, c in enumerate(self.calls)]
        return [{**n, "sizes": sizes[n["id"]]} if n["id"] in sizes else n for n in made]

    def workload(self) -> str:
        floating = sum(r == "input" for r, t in self.tensors.values())
        shapes = [tuple(t.shape) for _, t in self.outputs]
        return workload(self.calls, self.types, floating, shapes)

    def remarks(self) -> list[str]:
        notes = list(self.notes)
        moody = sorted(t for t in self.types if t.startswith(("BatchNorm", "Dropout")))
        if moody:
            notes.append(f"{', '.join(moody)}: eval and train mode differ; "
                         "the side file's `mode` decides")
        return notes

    def attributes(self, drop: Collection[str] = ()) -> list[Json]:
        return [{"name": n, "value": scalar_json(v)} for n, v in self.scalars.items()
                if n not in drop]
