# SPDX-License-Identifier: Apache-2.0
"""An exported program as an operator of PyTorch, and the rules that say when it uses its kernels.

The kernels serve the shapes, dtypes and GPU for which they were judged. The reference (the module that the
kernels replace) computes everything else: other shapes and GPUs, other attributes of the module, autocast,
tensors that are not contiguous. It also computes gradients.
"""

import copy
import inspect
import sys
import types
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional, Union

import torch
from torch import Tensor

from .runtime import Driver, Program, gpu_trouble  # in exports to one file, both are in it

_ALIGNED = 256  # bytes; the kernels were judged with buffers at multiples of it
_NEVER, _IN_ITS_MODE, _ALWAYS = 0, 1, 2  # in which modes the kernels compute what a module does
_LOADED = sys.modules.setdefault("_exported_programs", types.ModuleType("_exported_programs")).__dict__


def _dtype(name: str) -> torch.dtype:
    return getattr(torch, name)


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    """(name, leaf) of everything in nested lists, tuples and dictionaries."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in _leaves(f"{name}.{key}", value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for i, item in enumerate(value) for leaf in _leaves(f"{name}.{i}", item)]
    return [(name, value)]


def _tree(leaves: Iterable[tuple[str, Any]]) -> Any:
    """The inverse of _leaves: dictionaries, or lists if the keys count from 0."""
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, value in leaves:
        head, _, rest = name.partition(".")
        groups.setdefault(head, []).append((rest, value))
    made = {head: group[0][1] if group[0][0] == "" else _tree(group) for head, group in groups.items()}
    return list(made.values()) if list(made) == [str(i) for i in range(len(made))] else made


def _rebuilt(like: Any, leaves: Iterator[Tensor]) -> Any:
    """Puts these tensors into the structure that forward() returns."""
    if isinstance(like, torch.Tensor):
        return next(leaves)
    if isinstance(like, dict):
        return {key: _rebuilt(value, leaves) for key, value in like.items()}
    if isinstance(like, (list, tuple)):
        made = [_rebuilt(value, leaves) for value in like]
        if isinstance(like, list):
            return made
        return type(like)(*made) if hasattr(like, "_fields") else tuple(made)
    return like


def _equal(a: Any, b: Any) -> bool:
    """Whether two values are equal and have equal types at every level."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.cpu(), b.cpu())
    if isinstance(a, dict):
        return list(a) == list(b) and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b))
    return a is b or (a == b) is True


def _changes_with_mode(module: Any) -> bool:
    """Whether a module of PyTorch computes something else in training mode."""
    kind = type(module).__name__
    if "Dropout" in kind:
        return module.p > 0
    if "InstanceNorm" in kind:
        return module.track_running_stats
    dropout = getattr(module, "dropout", 0.0)
    return "BatchNorm" in kind or kind == "RReLU" or (isinstance(dropout, float) and dropout > 0)


# Private parts of PyTorch. If one is missing, a slower public one replaces it.
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def _watched() -> bool:
    """Whether PyTorch traces or records calls."""
    return _modes() > 0 or torch.jit.is_tracing()


def _stream_of(device: int) -> int:
    """The driver's handle of the current stream."""
    return _raw_stream(device) if _raw_stream else torch.cuda.current_stream(device).cuda_stream


def _owner(module: Any, name: str) -> tuple[Any, str]:
    *path, last = name.split(".")
    for part in path:
        module = getattr(module, part)
    return module, last


class Exported:
    """One exported program. `data`: launches.json. `images`: the machine code of its modules."""

    def __init__(self, data: dict[str, Any], images: list[list[bytes]], reference: Any) -> None:
        self.data, self.images, self.reference = data, images, reference
        self.names = [name for name, _ in data["inputs"]]
        self.state = [name for name, _ in data["state"]]
        self.paths = [name.split(".") for name in self.state]
        self.given = data["inputs"] + data["state"]
        self.written = [name for name, _ in self.given if name in data.get("mutated", [])]
        self.cases = [[(torch.Size(shape["tensors"][name]), _dtype(dtype)) for name, dtype in self.given]
                      for shape in data["shapes"]]
        self.made = [[(torch.Size(shape["tensors"][name]), _dtype(dtype)) for name, dtype in data["outputs"]]
                     for shape in data["shapes"]]
        self.arguments = data["arguments"]
        self.outputs = [name for name, _ in data["outputs"]]
        self.returns = data.get("returns", self.outputs)  # includes mutated tensors that forward() returns
        self.single = self.returns == ["out"]
        self.parameters = list(inspect.signature(reference.Model.forward).parameters.values())[1:]
        self.plain = [p.name for p in self.parameters[: len(self.names)]] == self.names and not self.arguments
        self.anywhere = False  # whether the operator also takes tensors that are not on a GPU
        self.programs: dict[int, Any] = {}  # by device; None: the kernels do not run on it
        self.spare: dict[int, torch.nn.Module] = {}
        self.driver: Optional[Driver] = None
        self.like: Any = None
        self.skeleton: Any = None
        self.op = self.register()

    # --- the operator

    def register(self) -> Any:
        """Registers torch.ops.NAMESPACE.run. An export that is loaded twice shares one operator."""
        space = self.data["namespace"]
        self.current = _LOADED.setdefault(space, self)
        if self.current is not self:
            return self.current.op
        arguments = ", ".join(f"Tensor(a{i}!) t{i}" if name in self.written else f"Tensor t{i}"
                              for i, (name, _) in enumerate(self.given))
        results = ", ".join("Tensor" for _ in self.outputs)
        self.library = torch.library.Library(space, "FRAGMENT")
        tags = [torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order]
        results = results if len(self.outputs) == 1 else f"({results})"
        self.library.define(f"run({arguments}) -> {results}", tags=tags)
        self.library.impl("run", self.compute, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{space}::run", self.imagine, lib=self.library)
        if not self.written:  # otherwise the reference computes gradients
            torch.library.register_autograd(f"{space}::run", self.backward, setup_context=self.keep, lib=self.library)
        return getattr(torch.ops, space).run.default

    def compute(self, *tensors: Tensor) -> Any:
        """Runs the operator. Its results are new and contiguous, whether kernels or the reference computed them."""
        fits = all(t.is_cuda and t.is_contiguous() for t in tensors)
        return self.packed(self.serve(self.case_of(tensors) if fits else None, tensors))

    def packed(self, made: Sequence[Tensor]) -> Any:
        """Outputs in the form that the operator returns."""
        return made[0] if len(made) == 1 else tuple(made) if made else None

    def imagine(self, *tensors: Tensor) -> Any:
        case = self.case_of(tensors)
        if case is None:
            shapes = [(t.shape, t.dtype) for t in self.call_reference(tensors)]
        else:
            shapes = self.made[case]
        return self.packed([torch.empty(shape, dtype=dtype, device=tensors[0].device) for shape, dtype in shapes])

    @staticmethod
    def keep(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(self, ctx: Any, *grads: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
        """Runs the reference again and returns its gradients."""
        with torch.enable_grad():
            wanted = ctx.needs_input_grad
            tensors = [t.detach().requires_grad_(w) for t, w in zip(ctx.saved_tensors, wanted)]
            outputs = self.call_reference(tensors)
            used = [(o, g) for o, g in zip(outputs, grads) if g is not None and o.requires_grad]
            leaves = [t for t, w in zip(tensors, wanted) if w]
            if not used:
                return tuple(None for _ in tensors)
            found = iter(torch.autograd.grad([o for o, _ in used], leaves, [g for _, g in used], allow_unused=True))
        return tuple(next(found) if w else None for w in wanted)

    # --- when the kernels are used

    def case_of(self, tensors: Sequence[Tensor]) -> Optional[int]:
        """The number of the case with these shapes and dtypes, or None."""
        for number, case in enumerate(self.cases):
            fits = True
            for t, (shape, dtype) in zip(tensors, case):
                fits = fits and t.dtype == dtype and t.shape == shape
            if fits:
                return number
        return None

    def ready(self, case: int, tensors: Sequence[Tensor]) -> bool:
        """Whether all tensors are on one GPU on which the kernels run."""
        device = tensors[0].get_device()
        if device < 0 or self.program_of(device) is None:
            return False
        for t in tensors:
            if t.get_device() != device:
                return False
        return True

    def serve(self, case: Optional[int], tensors: Sequence[Tensor]) -> list[Tensor]:
        if case is not None and self.ready(case, tensors):
            return self.launch(case, tensors)
        return [t.clone(memory_format=torch.contiguous_format) for t in self.call_reference(tensors)]

    def trouble(self, device: Union[str, torch.device]) -> Optional[str]:
        """Why the kernels do not run on this device, or None."""
        device = torch.device(device)
        return "it is not a GPU" if device.type != "cuda" else gpu_trouble(self.data, device.index or 0)

    def program_of(self, device: int) -> Any:
        """The kernels on a GPU, loaded at the first call. None if they do not run there."""
        if device not in self.programs:
            trouble = gpu_trouble(self.data, device)
            if trouble:
                warnings.warn(f"{self.data['name']}: the exported kernels are not used: {trouble}", stacklevel=3)
                self.programs[device] = None
            else:
                self.driver = self.driver or Driver()
                self.programs[device] = Program(self.driver, self.data, self.images, device)
        return self.programs[device]

    def launch(self, case: int, tensors: Sequence[Tensor]) -> list[Tensor]:
        device = tensors[0].get_device()
        if device != torch.cuda.current_device():
            with torch.cuda.device(device):
                return self.launch(case, tensors)
        place, own = tensors[0].device, tensors
        tensors = [t if t.data_ptr() % _ALIGNED == 0 else t.clone() for t in tensors]
        made = [torch.empty(size, dtype=dtype, device=place) for size, dtype in self.made[case]]
        pointers = [t.data_ptr() for t in tensors] + [t.data_ptr() for t in made]
        shape = self.data["shapes"][case]
        if shape["scratch_bytes"]:
            scratch = torch.empty(shape["scratch_bytes"], dtype=torch.uint8, device=place)
            start = scratch.data_ptr()
            pointers += [start + offset for offset in shape["scratch"]]
        self.programs[device].run(case, pointers, _stream_of(device))
        for (name, _), t, used in zip(self.given, own, tensors):
            if used is not t and name in self.written:
                t.copy_(used)
        return made

    # --- the module

    def adopt(self, module: torch.nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
        """In which modes the kernels compute what `module` does, which was just constructed with these arguments."""
        if self.current is not self:
            return self.current.adopt(module, args, kwargs)
        if not _equal(self.arguments_of(args, kwargs), self.arguments_of(self.init_inputs(), {})):
            return _NEVER
        for name, wanted in self.data["attributes"].items():
            if not self.same(module, name, wanted):
                return _NEVER
        if self.skeleton is None:
            self.skeleton = self.without_values(module)
        if not self.single and self.like is None:
            self.like = self.results_alike()
        changes = self.data["mentions_training"] or any(map(_changes_with_mode, module.modules()))
        return _IN_ITS_MODE if changes else _ALWAYS

    def init_inputs(self) -> list[Any]:
        return list(getattr(self.reference, "get_init_inputs", list)())

    def arguments_of(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The constructor's arguments by name, with defaults."""
        bound = inspect.signature(self.reference.Model.__init__).bind(None, *args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    @staticmethod
    def same(module: Any, name: str, wanted: Any) -> bool:
        *path, last = name.split(".")
        value = module
        for part in path + [last]:
            value = value[int(part)] if isinstance(value, (tuple, list)) else getattr(value, part, None)
        if isinstance(wanted, dict):
            wanted = float(wanted["float"])
        return value == wanted or (value != value and wanted != wanted)

    def accept(self, module: torch.nn.Module, when: int, args: Sequence[Any],
               kwargs: dict[str, Any]) -> Optional[tuple[int, list[Tensor]]]:
        """(case, the operator's tensors) if the kernels can serve this call of forward(), else None."""
        if when != _ALWAYS and (when == _NEVER or module.training != self.data["train_mode"]):
            return None
        tensors = list(args) if self.plain and not kwargs else self.by_name(args, kwargs)
        if tensors is None or len(tensors) != len(self.names) or torch.is_autocast_enabled():
            return None
        for path in self.paths:
            value: Any = module
            for part in path:
                value = getattr(value, part)
            tensors.append(value)
        for t in tensors:
            if not isinstance(t, torch.Tensor) or not (t.is_cuda or self.anywhere) or not t.is_contiguous():
                return None
        if self.written and self.differentiated(tensors):
            return None
        case = self.case_of(tensors)
        return None if case is None else (case, tensors)

    def by_name(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Optional[list[Tensor]]:
        leaves = []
        for number, value in enumerate(args):
            p = self.parameters[min(number, len(self.parameters) - 1)]
            if p.kind == p.VAR_POSITIONAL:
                leaves += _leaves(f"{p.name}.{number - len(self.parameters) + 1}", value)
            else:
                leaves += _leaves(p.name, value)
        for name in kwargs:
            leaves += _leaves(name, kwargs[name])
        tensors = {name: leaf for name, leaf in leaves if isinstance(leaf, torch.Tensor)}
        others = {name: leaf for name, leaf in leaves if not isinstance(leaf, torch.Tensor)}
        if others != self.arguments or set(tensors) != set(self.names):
            return None
        return [tensors[name] for name in self.names]

    def answer(self, case: int, tensors: list[Tensor]) -> Any:
        """Returns what forward() returns. Bypasses the operator if nothing traces, records or differentiates it."""
        if torch.compiler.is_compiling() or _watched() or self.differentiated(tensors):
            made = self.op(*tensors)
        else:
            made = self.packed(self.current.serve(case, tensors))
            self.note_written(tensors)
        if self.single:
            return made
        made = [made] if len(self.outputs) == 1 else made or ()
        found = {**dict(zip((name for name, _ in self.given), tensors)), **dict(zip(self.outputs, made))}
        return _rebuilt(self.current.like, iter([found[name] for name in self.returns]))

    def note_written(self, tensors: Sequence[Tensor]) -> None:
        """Tells autograd which tensors the kernels wrote, as PyTorch's own operators do."""
        for (name, _), t in zip(self.given, tensors):
            if name in self.written and not t.is_inference():
                torch.autograd.graph.increment_version(t)

    @staticmethod
    def differentiated(tensors: Sequence[Tensor]) -> bool:
        if not torch.is_grad_enabled():
            return False
        for t in tensors:
            if t.requires_grad:
                return True
        return False

    # --- the reference

    def without_values(self, module: torch.nn.Module) -> torch.nn.Module:
        """A copy of the module, of the reference's class, whose parameters and buffers take no memory."""
        known = {}
        for t in list(module.parameters()) + list(module.buffers()):
            empty = torch.empty_like(t, device="meta")
            if isinstance(t, torch.nn.Parameter):
                empty = torch.nn.Parameter(empty, requires_grad=t.requires_grad)
            known[id(t)] = empty
        made = copy.deepcopy(module, known)
        made.__class__ = self.reference.Model
        return made.train(self.data["train_mode"])

    def call(self, tensors: Sequence[Tensor]) -> Any:
        """The reference's result for the operator's tensors."""
        if self.skeleton is None:
            self.skeleton = self.without_values(self.reference.Model(*self.init_inputs()))
        module: Any = self.spare.pop(0, None) or copy.deepcopy(self.skeleton)  # each thread uses its own
        state = dict(zip(self.state, tensors[len(self.names) :]))
        given = dict(state)
        registered = {name for name, _ in [*module.named_parameters(), *module.named_buffers()]}
        for name in [n for n in state if n not in registered]:
            owner, last = _owner(module, name)
            setattr(owner, last, state.pop(name))
        tree = _tree([*zip(self.names, tensors), *self.arguments.items()])
        args = []
        for p in self.parameters:
            if p.kind == p.VAR_POSITIONAL:
                args += tree.pop(p.name, [])
            elif p.name in tree and p.kind != p.KEYWORD_ONLY:
                args.append(tree.pop(p.name))
            else:
                break
        made = torch.func.functional_call(module, state, tuple(args), tree)
        for name in self.written:  # forward() may have replaced a tensor
            if name in given:
                owner, last = _owner(module, name)
                now = state.get(name, None) if name in state else getattr(owner, last)
                if now is not given[name]:
                    given[name].copy_(now)
        self.spare[0] = module
        return made

    def call_reference(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Runs the reference. Writes mutated tensors and returns the other results."""
        found = [leaf for _, leaf in _leaves("out", self.call(tensors)) if isinstance(leaf, torch.Tensor)]
        return [leaf for name, leaf in zip(self.returns, found) if name not in self.written]

    def results_alike(self) -> Any:
        """What forward() returns, with tensors that have no values."""
        shapes = self.cases[0]
        return self.call([torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in shapes])
