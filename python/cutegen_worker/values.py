# SPDX-License-Identifier: Apache-2.0
"""One set of values: inputs, parameters, native outputs, float64 truth and its sensitivity."""

import contextlib
import copy
import hashlib
import itertools
import mmap
import os
import sys
import warnings

import torch

from . import draw
from .errors import WorkerError, blame, first_line
from .names import DTYPES, flatten, state_tensors, stray_tensors
from .source import Source, clean_state
from .state import move_state, seed_all
from .trace import SIZES, build

ALIGN = 256
DRAWS = 3
FAR = 32  # roundings at once, in both directions: what lies beyond a kink is seen
MOST_PAIRINGS = 4  # tells 16 tensors apart
MANY = 1 << 22
PIECE = 1 << 26  # elements that are worked on at once where temporaries would not fit
MOST_ENDLESS = 0.1  # share of an output that may be NaN or infinite where inputs are numbers
ULP = {"fp32": 2.0**-23, "tf32": 2.0**-10, "fp16": 2.0**-10, "bf16": 2.0**-7}
LOW = {"fp16": torch.float16, "bf16": torch.bfloat16}


def seed_of(*parts):
    """63 bits that depend on all of `parts`."""
    text = "\0".join(str(p) for p in parts).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def floating(tensor):
    return tensor.is_floating_point()


class Reference:
    """The model and inputs of one set, run in one precision after another."""

    def __init__(self, model, inputs, file, seed):
        self.model, self.inputs, self.file, self.seed = model, inputs, file, seed

    def run(self, change, default=torch.float32):
        """Output tensors of a copy whose floating tensors went through change(name, tensor)."""
        model = copy.deepcopy(self.model)
        with torch.no_grad():
            replace_state(model, change)
            args, kwargs = self.inputs.map(
                lambda n, t: change(n, t.clone()) if floating(t) else t.clone()
            )
            seed_all(self.seed)
            with default_dtype(default), blame(self.file, "forward()", SIZES):
                out = model(*args, **kwargs)
        return [t for _, t in flatten("out", out) if isinstance(t, torch.Tensor)]

    def rows(self, some, count):
        """The same with these leading rows of the inputs that have `count`."""
        args, kwargs = self.inputs.map(
            lambda _, t: t[some] if t.dim() and t.shape[0] == count else t
        )
        inputs = type(self.inputs)(kwargs if self.inputs.keyword else args, self.model, self.file)
        return Reference(self.model, inputs, self.file, self.seed)


def replace_state(model, change):
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for key, t in table.items():
                if t is not None and floating(t):
                    t.data = change("", t.data)
    for _, owner, key, t in stray_tensors(model):
        if floating(t):
            setattr(owner, key, change("", t))


def to_tf32(t):
    """Rounded to the 10 mantissa bits that tensor cores read."""
    if t.dtype != torch.float32:
        return t
    bits = t.contiguous().view(torch.int32)
    rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(t), rounded, t)


def native(reference, mode):
    if mode == "tf32":
        return reference.run(lambda _, t: to_tf32(t))
    if mode in LOW:
        low = LOW[mode]
        return reference.run(lambda _, t: t.to(low), low)
    return reference.run(lambda _, t: t)


def one_sign(pattern, bit, eps):
    """A change that moves all of a tensor one way: the way that bit `bit` of its number says."""
    numbers = itertools.count()

    def moved(_, t):
        up = pattern if bit is None else next(numbers) >> bit & 1
        return t.double() * (1 + eps if up else 1 - eps)

    return moved


def pieces(count):
    """Slices of at most PIECE elements."""
    return [slice(at, min(at + PIECE, count)) for at in range(0, count, PIECE)]


def moves(mode, generator, tensors):
    """Changes of the inputs, as (change(name, tensor), roundings of it); `tensors` counts one run.

    One rounding takes random signs a few times, once the same sign, and then, for every two
    tensors, once opposite ones: where a difference of two tensors is nearly nothing, random signs
    that agree by chance would show no change at all. FAR roundings go one way and back: below a
    ReLU's kink the truth is zero, and so is the native result, and no single rounding moves it,
    though a sum of thousands may honestly end above. In modes of few bits FAR would be no small
    change any more.
    """
    eps = ULP[mode]

    def noisy(size):
        def change(_, t):
            next(tensors)
            t = t.double().contiguous()
            flat = t.view(-1)
            for part in pieces(flat.numel()):
                sign = torch.randint(0, 2, flat[part].shape, generator=generator, dtype=torch.int8,
                                     device=generator.device)  # fmt: skip
                flat[part] *= 1 + size * eps * (2.0 * sign.double() - 1)
            return t

        return change

    runs = DRAWS
    for _ in range(DRAWS):
        yield noisy(1), 1
    if mode == "fp32":
        runs += 2
        state = generator.get_state()
        yield noisy(FAR), FAR
        generator.set_state(state)  # the same signs
        yield noisy(-FAR), FAR
    yield one_sign(1, None, eps), 1
    many = next(tensors) // runs
    for bit in range(min(max(many - 1, 0).bit_length(), MOST_PAIRINGS)):
        yield one_sign(0, bit, eps), 1


def sensitivity(reference, truth, mode, generator, worst):
    """Largest change of each output for one rounding of its inputs, into `worst` (zeros, or None
    for outputs that are no numbers)."""
    for change, roundings in moves(mode, generator, itertools.count()):
        for k, moved in enumerate(reference.run(change, torch.float64)):
            if worst[k] is not None:
                keep_larger(worst[k].view(-1), moved.reshape(-1), truth[k].reshape(-1), roundings)


def keep_larger(worst, moved, truth, roundings):
    for part in pieces(worst.numel()):
        away = (moved[part].double() - truth[part].double()).abs()
        away = torch.nan_to_num(away, 0, 0, 0) / roundings
        worst[part] = torch.maximum(worst[part], away)


class Packer:
    """Tensors at aligned offsets of one memory file."""

    def __init__(self):
        self.slots, self.tensors, self.size = [], [], 0

    def add(self, name, part, tensor, dtype=None):
        tensor = tensor.detach().to(dtype or tensor.dtype).contiguous()
        count = tensor.numel() * tensor.element_size()
        self.slots.append({
            "name": name, "part": part, "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape), "offset": self.size, "bytes": count,
        })  # fmt: skip
        self.tensors.append(tensor)
        self.size = (self.size + count + ALIGN - 1) // ALIGN * ALIGN

    def memory(self):
        size = max(self.size, ALIGN)
        fd = os.memfd_create("tensors", os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as window:
            for slot, t in zip(self.slots, self.tensors):
                if slot["bytes"]:
                    target = torch.frombuffer(window, dtype=torch.uint8, count=slot["bytes"],
                                              offset=slot["offset"])  # fmt: skip
                    target.copy_(t.reshape(-1).view(torch.uint8))
                    del target
        return fd, size


@contextlib.contextmanager
def threads_for(reference):
    """One thread where tensors are small: on a busy machine threads wait longer than they work."""
    before = torch.get_num_threads()
    if sum(t.numel() for _, t in reference.inputs.tensors()) < MANY:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def prepare(source, request, seed, domain, device=None):
    """The reference of one set, with fresh parameters and the inputs of the family."""
    seed_all(seed_of(seed, "model"))
    model, inputs = build(source.run(request["constants"]), source.file)
    model.train(request["train_mode"])
    generator = torch.Generator(device or "cpu").manual_seed(seed_of(seed, "values"))
    move_state(model, device)
    for p in model.parameters():
        p.requires_grad_(False)
    draw.redraw(model, generator)
    seed_all(seed_of(seed, "inputs"))
    family = request["family"]
    if family == "made":  # drawn again: what Model() consumed of the seed must not matter
        module = sys.modules["cutegen_task"]
        with blame(source.file, "get_inputs()", SIZES):
            inputs = type(inputs)(module.get_inputs(), model, source.file)
    nan = all(d.startswith(("f", "bf")) for d in request["dtypes"])  # an index of NaN is no answer
    changed = {n: draw.input_values(t.detach(), family, generator, domain, nan)
               for n, t in on_device(inputs, device)}  # fmt: skip
    args, kwargs = inputs.map(lambda n, t: changed[n])
    inputs = type(inputs)(kwargs if inputs.keyword else args, model, source.file)
    return Reference(model, inputs, source.file, seed_of(seed, "forward")), generator


def on_device(inputs, device):
    for name, t in inputs.tensors():
        yield name, t if device is None else t.to(device)


def make_set(request):
    """(reply, memory file) for {source, file, constants, train_mode, math_mode, family, ...}."""
    if request["family"] not in draw.FAMILIES:
        raise WorkerError(f"unknown input family '{request['family']}'", "",
                          "one of " + ", ".join(draw.FAMILIES))  # fmt: skip
    seed = seed_of(request["seed"], request["family"], request["shape"])
    source = Source(request["source"], request["file"])
    with clean_state(source.file), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for domain in draw.DOMAINS if request["family"] != "made" else (draw.RANGE,):
            reference, generator = prepare(source, request, seed, domain)
            with threads_for(reference):
                plain = in_domain(reference, request["family"], domain)
                if plain is not None:
                    return pack(reference, generator, request, plain)


def in_domain(reference, family, domain):
    """The native outputs, or None where the module does not work on these numbers."""
    last = domain == draw.DOMAINS[-1]
    try:
        outputs = reference.run(lambda _, t: t)
    except WorkerError:
        if last:
            raise
        return None
    if last or family == draw.SPECIAL:
        return outputs
    for t in outputs:
        if floating(t) and t.numel() and (~torch.isfinite(t)).double().mean() > MOST_ENDLESS:
            return None
    return outputs


def pack(reference, generator, request, plain):
    packer, notes, mode = Packer(), [], request["math_mode"]
    for name, t in reference.inputs.tensors():
        packer.add(name, "value", t)
    taken = {name for name, _ in reference.inputs.tensors()}
    for name, _, t in state_tensors(reference.model):
        packer.add("self." + name if name in taken else name, "value", t)
    names, dtypes = request["outputs"], request["dtypes"]
    if len(names) != len(plain):
        raise WorkerError(f"forward() returned {len(plain)} tensors; {len(names)} were described",
                          request["file"], "make the number of outputs constant")  # fmt: skip
    own = plain if mode == "fp32" else native(reference, mode)
    for name, dtype, t in zip(names, dtypes, own):
        wanted = next(d for d, n in DTYPES.items() if n == dtype)
        packer.add(name, "native", t, wanted)
    truths(packer, notes, reference, generator, names, mode)
    fd, size = packer.memory()
    return {"slots": packer.slots, "bytes": size, "notes": notes}, fd


def truths(packer, notes, reference, generator, names, mode):
    try:
        truth = reference.run(lambda _, t: t.double(), torch.float64)
        moved = [torch.zeros_like(t, dtype=torch.float64, memory_format=torch.contiguous_format)
                 if floating(t) else None for t in truth]  # fmt: skip
        sensitivity(reference, truth, mode, generator, moved)
    except WorkerError as error:
        notes.append("float64 does not run: " + first_line(error.message))
        truth = reference.run(lambda _, t: t)
        moved = [None] * len(truth)
    for name, t, s in zip(names, truth, moved):
        if floating(t) and t.dtype != torch.float64 and s is not None:
            notes.append(f"output '{name}' is {t.dtype} even for float64 inputs")
        packer.add(name, "truth", t, torch.float64)
        if s is not None:
            packer.add(name, "sensitivity", s, torch.float64)
