# SPDX-License-Identifier: Apache-2.0
"""Tensors of a task that forward() writes in place: which ones, their final values, least bytes.

A tensor is mutated if a call writes its storage (also through a view), or if forward() replaces it with another
tensor of its shape and dtype (`self.state = new`), unless that is a copy. A plain attribute counts only if
forward() reads its old value. Other attributes are by-products, such as a weight that each call computes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import reads
from .names import flatten, state_tensors
from .record import NORMS, place_of

if TYPE_CHECKING:
    from .record import Call, Place, Recorder, Tensors
    from .wire import Json

# These change every element. Other calls may keep some: a ReLU need not write positive elements.
CHANGE_ALL = {"add", "sub", "mul", "div", "lerp", "addcmul", "addcdiv", "addmm", "baddbmm", "exp", "neg",
              "sigmoid", "tanh", "cumsum", "fill", "zero", "normal", "uniform"}
MOST_UNSURE = 8  # tensors whose reads are counted separately
COPIES = {"_to_copy", "clone", "detach", "alias", "lift_fresh"}


def owners(tensors: Tensors) -> dict[int, str]:
    """{storage: name} of a task's tensors, {name: (role, tensor)}."""
    return {t.untyped_storage()._cdata: n for n, (_, t) in tensors.items()}


def find(recorder: Recorder, tensors: Tensors, replaced: Iterable[str]) -> set[str]:
    """The names of tensors that recorded calls write or that forward() replaced."""
    storages = {p.storage for c in recorder.calls for p in c.written}
    written = {n for n, (_, t) in tensors.items() if t.untyped_storage()._cdata in storages}
    return written | set(replaced)


def replaced(recorder: Recorder, model: torch.nn.Module, tensors: Tensors,
             inputs: Collection[str]) -> tuple[dict[str, Tensor], list[str]]:
    """Returns {name: tensor that replaced a parameter, buffer or attribute}, and the names whose new tensor has another
    shape or dtype."""
    found: dict[str, Tensor] = {}
    changed: list[str] = []
    read = {r.name for c in recorder.calls for r in c.refs}
    registered = {id(t) for t in [*model.parameters(), *model.buffers()]}
    for name, tensor in state_of(model, inputs).items():
        if name not in tensors or tensor is tensors[name][1]:
            continue
        old = tensors[name][1]
        state = id(tensor) in registered or name in read
        if not state or is_copy(recorder, tensor, name):
            continue
        if tensor.shape == old.shape and tensor.dtype == old.dtype:
            found[name] = tensor
        else:
            changed.append(name)
    return found, changed


def is_copy(recorder: Recorder, tensor: Tensor, name: str) -> bool:
    """Whether a tensor holds the initial values of the tensor called `name`."""
    made = {n: c for c in recorder.calls for n in c.out_names}
    at = recorder.names.get(id(tensor))
    while at in made:
        call = made[at]
        refs = call.refs
        if call.func.overloadpacket.__name__ not in COPIES or not refs:
            return False
        at = refs[0].name
    return at == name


def state_of(model: torch.nn.Module, inputs: Collection[str]) -> dict[str, Tensor]:
    """Parameters, buffers and plain tensors of a module by the task's names."""
    return {"self." + n if n in inputs else n: t for n, _, t in state_tensors(model)}


def same_memory(a: Tensor, b: Tensor) -> bool:
    return (a.untyped_storage()._cdata == b.untyped_storage()._cdata and a.shape == b.shape
            and a.stride() == b.stride() and a.storage_offset() == b.storage_offset())


def results(out: Any, request: Json, final: dict[str, Tensor]) -> list[Tensor]:
    """What the evaluator judges: outputs that are not mutated tensors, then the `final` values by name."""
    found = [t for _, t in flatten("out", out) if isinstance(t, torch.Tensor)]
    names = request.get("returns") or []
    if len(names) == len(found):
        found = [t for n, t in zip(names, found) if n not in final]
    return found + [final[n] for n in sorted(final)]


class Changes:
    """Lower bounds on what calls read and write if forward() mutates tensors; see reads.py.

    A program need neither read nor write an element that keeps its value. So if a call overwrites a tensor with
    values computed from it, they count only if the call changes every element.
    """

    def __init__(self, recorder: Recorder, tensors: Tensors, final: dict[str, Tensor],
                 outputs: list[tuple[str, Tensor]]) -> None:
        self.calls, self.final = recorder.calls, final
        self.tensors = {n: t for n, (_, t) in tensors.items()}
        self.outputs = [place_of(t) for _, t in outputs]
        self.live = reads.depends(self.calls, [place_of(t).storage for t in self.tensors.values()])
        self.ends: dict[str, list[Place]] = {n: [] for n in final}
        self.sure = dict.fromkeys(final, 0)
        self.unsure: set[str] = set()
        owner = {s: n for s, n in owners(tensors).items() if n in final}
        for at, call in enumerate(self.calls):
            for place in call.written:
                if place.storage in owner:
                    self.note(owner[place.storage], place, at)
        for name, tensor in final.items():
            if tensor is not self.tensors[name]:
                self.note_replaced(name, place_of(tensor))

    def note(self, name: str, place: Place, at: int) -> None:
        """Records that call number `at` writes a part of a tensor."""
        self.ends[name].append(place)
        if self.tells(name, at):
            self.sure[name] = max(self.sure[name], reads.distinct(place)[0])

    def tells(self, name: str, at: int) -> bool:
        call = self.calls[at]
        made = call.func.overloadpacket.__name__
        if made == "copy_":
            source = call.refs[-1].place.storage
            fresh = self.is_new(name, source, at)
            if not fresh:
                self.unsure.add(name)
            return fresh
        return self.changes_all(call)

    def is_new(self, name: str, storage: int, at: int) -> bool:
        """Whether a value does not depend on the tensor, or differs from it in every element."""
        makers = [c for c in self.calls[:at] if writes_to(c, storage)]
        if len(makers) == 1 and self.changes_all(makers[0]):
            return True
        return storage not in reads.depends(self.calls[:at], [self.tensors[name].untyped_storage()._cdata])

    def changes_all(self, call: Call) -> bool:
        """Whether a call changes every element that it writes, so that a program needs all stores."""
        name = call.func.overloadpacket.__name__
        return name in NORMS or name.rstrip("_") in CHANGE_ALL and not self.leaves_some(call)

    def leaves_some(self, call: Call) -> bool:
        """Whether constant arguments may leave elements unchanged: x + 0, x * mask."""
        name = call.func.overloadpacket.__name__.rstrip("_")
        same = 1 if name in ("mul", "div") else 0
        if name not in ("fill", "zero") and same in [a for a in call.args[1:] if type(a) in (int, float)]:
            return True
        alpha = call.kwargs.get("alpha", call.kwargs.get("value", 1))
        return alpha == 0 or any(r.known is not None and r.place.storage not in self.live for r in call.refs)

    def note_replaced(self, name: str, place: Place) -> None:
        self.ends[name].append(place)
        if self.is_new(name, place.storage, len(self.calls)):
            self.sure[name] = reads.distinct(place)[0]
        else:
            self.unsure.add(name)

    def writes(self) -> dict[str, int]:
        """Returns {name: bytes}. If several calls write parts of a tensor, only the largest part counts, because parts
        may overlap."""
        return {n: min(count, self.tensors[n].numel()) * self.tensors[n].element_size()
                for n, count in self.sure.items()}

    def reads(self) -> dict[str, int]:
        """Returns {name: elements} that the outputs or the written tensors need of each tensor of the task."""
        needed = self.needed(self.ends, self.final)
        for i, name in enumerate(sorted(self.unsure)):
            ends = {n: places for n, places in self.ends.items() if n != name}
            needed[name] = self.needed(ends, self.final)[name] if i < MOST_UNSURE else 0
        for_outputs = self.needed({}, ())
        return {n: max(count, for_outputs[n]) for n, count in needed.items()}

    def needed(self, ends: dict[str, list[Place]], kept: Iterable[str]) -> dict[str, int]:
        places = {n: place_of(t) for n, t in self.tensors.items()}
        wanted = dict.fromkeys(p for found in ends.values() for p in found)
        return reads.elements(self.calls, places, [*self.outputs, *wanted],
                              {places[n].storage for n in kept})


def writes_to(call: Call, storage: int) -> bool:
    return any(p.storage == storage for p in call.written) or (
        not reads.is_view(call) and any(p.storage == storage for p in call.places))
