# SPDX-License-Identifier: Apache-2.0
"""Runs a module on meta tensors, without memory for its values, and records the ATen calls.

Recorder is a dispatch mode. Factories return meta tensors (shape and dtype, no storage). Small deterministic
tensors (arange, linspace, zeros, ...) stay real, so that Python code can read their values. While `recording`,
each call becomes a Call. An in-place call gives the tensor that it writes a new name.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .checked import check
from .promises import Promises

if TYPE_CHECKING:
    from torch._ops import OpOverload

Out = tuple[torch.Size, torch.dtype]
Tensors = dict[str, tuple[str, Tensor]]  # name -> (role, tensor)
About = tuple[str, list[tuple[int, str]], bool]

META = torch.device("meta")
SEEDED = torch.Tag.nondeterministic_seeded
MOST_CALLS = 150_000
MOST_REAL = 1 << 16
SIZES = {"full": 1, "scalar_tensor": 0}  # the number of a factory's arguments before its value
NORMS = {"native_batch_norm", "_native_batch_norm_legit"}
REAL_FACTORIES = {"arange", "linspace", "logspace", "zeros", "ones", "full", "eye",
                  "scalar_tensor", "tril_indices", "triu_indices"}


class Place(NamedTuple):
    """Where a tensor's elements are in its storage, and the storage's number of elements."""

    storage: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    total: int


def place_of(tensor: Tensor) -> Place:
    storage = tensor.untyped_storage()
    return Place(storage._cdata, int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride(),
                 storage.nbytes() // tensor.dtype.itemsize)


class Call:
    __slots__ = ("func", "args", "kwargs", "outs", "out_names", "id", "writes", "places", "written",
                 "site")
    id: str
    outs: list[Out]
    out_names: list[str]
    writes: list[tuple[str, torch.Size, torch.dtype]]
    places: list[Place]
    written: list[Place]
    site: tuple[str, torch.nn.Module | None] | None

    def __init__(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.site = None

    @property
    def refs(self) -> list[Ref]:
        return refs_of(self.kwargs.values(), refs_of(self.args, []))


class Ref:
    """A tensor argument: its place, the name that its value had at the call, and the values of a constant."""

    __slots__ = ("name", "shape", "dtype", "place", "known")

    def __init__(self, name: str, tensor: Tensor) -> None:
        self.name, self.shape, self.dtype = name, tuple(tensor.shape), tensor.dtype
        self.place, self.known = place_of(tensor), None if tensor.is_meta else tensor


def refs_of(values: Iterable[Any], out: list[Ref]) -> list[Ref]:
    for v in values:
        if isinstance(v, Ref):
            out.append(v)
        elif isinstance(v, list):
            refs_of(v, out)
    return out


def site(file: str) -> tuple[str, torch.nn.Module | None]:
    """(FILE:LINE, innermost torch.nn.Module) of the Python call that is running."""
    line, module = 0, None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not line and frame.f_code.co_filename == file:
            line = frame.f_lineno
        owner = frame.f_locals.get("self")
        if module is None and isinstance(owner, torch.nn.Module):
            module = owner
        frame = frame.f_back
    return (f"{file}:{line}" if line else file), module


def to_meta(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=META)


class RealIndices(TorchFunctionMode):
    """Lets the index of x[:, [0, 2]] keep its values although x is on meta."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        if func in (Tensor.__getitem__, Tensor.__setitem__):
            index = args[1]
            real = tuple(map(real_index, index)) if isinstance(index, tuple) else real_index(index)
            args = (args[0], real, *args[2:])
        return func(*args, **(kwargs or {}))


def real_index(index: Any) -> Any:
    numbers = isinstance(index, list) and bool(index) and all(type(i) is int for i in index)
    return torch.tensor(index) if numbers else index


@contextlib.contextmanager
def real_constants() -> Iterator[None]:
    """Lets torch.tensor(0.5, device=x.device) keep its value although x is on meta."""
    original = torch.tensor

    def tensor(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
        return original(data, **kwargs)

    torch.tensor = tensor  # type: ignore[assignment]
    try:
        with RealIndices():
            yield
    finally:
        torch.tensor = original


class Recorder(TorchDispatchMode):
    """Records calls. `file`: the task file, for the lines of calls that may draw random numbers."""

    def __init__(self, file: str = "") -> None:
        super().__init__()
        self.file = file
        self.recording = False
        self.calls: list[Call] = []
        self.outside: set[OpOverload] = set()  # operators of Model() and get_inputs(), which are not calls
        self.names: dict[int, str] = {}
        self.used: set[str] = set()
        self.keep: list[Tensor] = []  # keeps tensors alive, because id() identifies them
        self.storages: dict[int, list[int]] = {}
        self.stale: set[int] = set()
        self.hidden_write = False  # a view of a written tensor was read later
        self.constants: list[tuple[str, Tensor]] = []  # (name, tensor) of tensors that no call made
        self.twins: dict[int, Tensor] = {}
        self.fused: dict[int, torch.dtype] = {}  # id of a call -> dtype of the function that contains it (fused.py)
        self.promises = Promises()
        self.about: dict[OpOverload, About] = {}  # results of facts()

    def unique(self, base: str) -> str:
        name, n = base, 0
        while name in self.used:
            n += 1
            name = f"{base}_{n}"
        self.used.add(name)
        return name

    def bind(self, tensor: Tensor, name: str) -> None:
        if id(tensor) not in self.names:
            self.keep.append(tensor)
            self.storages.setdefault(tensor.untyped_storage()._cdata, []).append(id(tensor))
        self.names[id(tensor)] = name
        self.stale.discard(id(tensor))

    def twin(self, tensor: Tensor) -> Tensor:
        """The meta tensor that replaces a real tensor among meta arguments."""
        made = self.twins.get(id(tensor))
        if made is None:
            made = to_meta(tensor)
            self.twins[id(tensor)] = made
            self.keep.append(tensor)
        return made

    def facts(self, func: OpOverload) -> About:
        """(name, positions of written arguments, whether it has a device argument), computed once per operator."""
        got = self.about.get(func)
        if got is None:
            schema = func._schema
            written = [
                (i, a.name) for i, a in enumerate(schema.arguments)
                if a.alias_info is not None and a.alias_info.is_write
            ]
            device = any(a.name == "device" for a in schema.arguments)
            got = func.overloadpacket.__name__, written, device
            self.about[func] = got
        return got

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs) if kwargs else {}
        name, written, device = self.facts(func)
        tensors: list[Tensor] = []
        gather(args, tensors)
        gather(kwargs.values(), tensors)
        call = self.record(func, args, kwargs, tensors) if self.recording else None
        original = args, kwargs
        if any(t.device.type == "meta" for t in tensors):
            if any(t.device.type != "meta" for t in tensors):
                args = swap(args, self.twin)
                kwargs = {k: swap(v, self.twin) for k, v in kwargs.items()}
            if device and kwargs.get("device") is not None:
                kwargs = {**kwargs, "device": META}
        elif device and (tensors or not self.stays_real(name, func, args, kwargs)):
            kwargs["device"] = torch.device("cpu") if tensors else META
        elif device:
            kwargs["device"] = torch.device("cpu")
        check(func, args)
        out = func(*args, **kwargs)
        if len(written) == 1 and returns_target(func):
            at, argument = written[0]
            # The target itself, not the meta tensor that replaced a real target among the arguments.
            out = original[0][at] if at < len(original[0]) else original[1][argument]
        if call is not None:
            self.finish(call, name, written, original, out)
        elif not self.recording:
            self.outside.add(func)
            targets = [t for i, a in written for t in [args[i] if i < len(args) else kwargs.get(a)]]
            self.promises.note(func, args, kwargs, tensors, as_tensors(out), as_tensors(targets))
        return out

    def stays_real(self, name: str, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if name not in REAL_FACTORIES:
            return False
        count: float = 1
        for a in args[:SIZES.get(name, len(args))]:
            for n in a if isinstance(a, (list, tuple)) else (a,):
                if isinstance(n, (int, float)) and abs(n) > 1:
                    count *= abs(n)
        return count <= MOST_REAL

    def record(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Call:
        if len(self.calls) >= MOST_CALLS:
            raise RuntimeError(f"the module makes more than {MOST_CALLS} ATen calls")
        for t in tensors:
            if id(t) in self.stale:
                self.hidden_write = True
        call = Call(func, tuple(self.ref(a) for a in args),
                    {k: self.ref(v) for k, v in kwargs.items()})
        if SEEDED in func.tags:
            call.site = site(self.file)
        return call

    def ref(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            name = self.names.get(id(value))
            if name is None:
                if value.device.type != "meta" and value.numel() == 1:
                    return value.item()
                name = self.unique("constant")
                self.bind(value, name)
                self.constants.append((name, value))
            return Ref(name, value)
        if isinstance(value, (list, tuple)):
            return [self.ref(v) for v in value]
        return value

    def finish(self, call: Call, name: str, written: list[tuple[int, str]],
               original: tuple[tuple[Any, ...], dict[str, Any]], out: Any) -> None:
        args, kwargs = original
        outs = [t for t in (out if isinstance(out, (list, tuple)) else (out,))]
        outs = [t for t in outs if isinstance(t, torch.Tensor)]
        call.id = self.unique(name.strip("_") or name)
        call.outs = [(t.shape, t.dtype) for t in outs]
        many = isinstance(out, (list, tuple))
        call.out_names = [f"{call.id}.{i}" if many else call.id for i in range(len(outs))]
        call.places = [place_of(t) for t in outs]
        call.writes, call.written = [], []
        self.calls.append(call)
        for i, arg in written:
            target = args[i] if i < len(args) else kwargs.get(arg)
            for t in target if isinstance(target, (list, tuple)) else (target,):
                if isinstance(t, torch.Tensor):
                    self.written(call, t, outs)
        for t in statistics_written(call.func, args):
            self.written(call, t, outs)
        for t, n in zip(outs, call.out_names):
            self.bind(t, n)

    def written(self, call: Call, tensor: Tensor, outs: list[Tensor]) -> None:
        call.written.append(place_of(tensor))
        if not any(t is tensor for t in outs):
            n = f"{call.id}.w{len(call.writes)}"
            call.writes.append((n, tensor.shape, tensor.dtype))
            self.bind(tensor, n)
        for other in self.storages.get(tensor.untyped_storage()._cdata, ()):
            if other != id(tensor):
                self.stale.add(other)


def returns_target(func: OpOverload) -> bool:
    """Whether an operator returns the tensor that it writes, and nothing else."""
    returns = func._schema.returns
    alias = returns[0].alias_info if len(returns) == 1 else None
    return alias is not None and alias.is_write


def statistics_written(func: OpOverload, args: tuple[Any, ...]) -> list[Tensor]:
    """The running statistics that a batch norm writes in train mode, which its schema may not show."""
    if func.overloadpacket.__name__ not in NORMS or len(args) < 6 or args[5] is not True:
        return []
    return [t for t in args[3:5] if isinstance(t, torch.Tensor)]


def as_tensors(value: Any) -> list[Tensor]:
    """The tensors among an operator's results or arguments."""
    found: list[Tensor] = []
    gather(value if isinstance(value, (list, tuple)) else [value], found)
    return found


def gather(values: Iterable[Any], out: list[Tensor]) -> None:
    for v in values:
        if isinstance(v, torch.Tensor):
            out.append(v)
        elif isinstance(v, (list, tuple)):
            gather(v, out)


def swap(value: Any, twin: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return value if value.device.type == "meta" else twin(value)
    if isinstance(value, (list, tuple)):
        return type(value)(swap(v, twin) for v in value)
    return value
