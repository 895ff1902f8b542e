# SPDX-License-Identifier: Apache-2.0
"""Rules of reads.py: how many elements of its arguments a call needs for some of its results.

A rule takes an Asked and returns a count for each tensor argument. Counts are lower bounds over all values of
the arguments: a program must read an operand even if it is multiplied by zero, but indices may all be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from .graph import normal
from .promises import triangle

if TYPE_CHECKING:
    from .record import Call, Place, Ref

COPIES = {"_to_copy", "clone", "contiguous", "flip", "roll", "pixel_shuffle", "pixel_unshuffle", "repeat",
          "channel_shuffle", "native_channel_shuffle", "permute_copy", "view_copy", "expand_copy",
          "_reshape_copy", "prelu", "_prelu_kernel", "hardswish", "log_sigmoid_forward", "cumsum", "cumprod",
          "logcumsumexp", "cummax", "cummin"}
REDUCTIONS = {"sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "var",
              "std", "var_mean", "std_mean", "norm", "linalg_vector_norm", "logsumexp", "aminmax", "mse_loss",
              "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss", "nansum", "glu",
              "binary_cross_entropy_with_logits", "median", "nanmedian", "_cdist_forward"}
PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1), "vdot": (0, 1), "matmul": (0, 1),
            "linear": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "addmv": (1, 2)}
WHOLE = {"_fft_r2c", "_fft_c2c", "_trilinear", "bilinear", "addr", "adaptive_avg_pool2d", "_adaptive_avg_pool2d",
         "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_max_pool1d",
         "adaptive_avg_pool1d"}
FACTORS = {"mul": ("other",), "pow": ("exponent",), "add": ("alpha",), "sub": ("alpha",), "rsub": ("alpha",),
           "addcmul": ("value",), "addcdiv": ("value",), "lerp": ("weight",), "addmm": ("alpha",),
           "baddbmm": ("alpha",), "addmv": ("alpha",)}
KEPT_BY = {"add": (("other", 0), ("alpha", 0)), "sub": (("other", 0), ("alpha", 0)), "mul": (("other", 1),),
           "div": (("other", 1),), "pow": (("exponent", 1),), "lerp": (("weight", 0),),
           "addcmul": (("value", 0),), "addcdiv": (("value", 0),)}
KEEPING = {"index_put", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill",
           "masked_fill", "masked_scatter", "put", "tril", "triu", "fill_diagonal"}
MOST_STEPS = 300_000


def share(count: int, part: int, whole: int) -> int:
    """count * part / whole, rounded up."""
    return -(-count * part // whole) if whole else 0


class Asked:
    """A call, and how many elements of each of its results later calls need."""

    def __init__(self, call: Call, made: list[Place], counts: list[int], uses: list[dict[Place, int]], live: set[int],
                 producers: dict[int, Call]) -> None:
        self.call, self.counts, self.uses, self.live, self.producers = call, counts, uses, live, producers
        self.refs = call.refs
        self.sizes = [prod(p.shape) for p in made]
        self.shapes = [p.shape for p in made]
        names = call.func.overloadpacket.__name__
        self.name = names if names.endswith("__") else names.rstrip("_")
        args, kwargs = normal(call)
        given = zip((a.name for a in call.func._schema.arguments if not a.kwarg_only), args)
        self.args = {**dict(given), **kwargs}

    @property
    def count(self) -> int:
        return self.counts[0]

    @property
    def size(self) -> int:
        return self.sizes[0]

    @property
    def whole(self) -> bool:
        """Whether later calls need some result as a whole."""
        return any(n == s > 0 for n, s in zip(self.counts, self.sizes))

    def constant(self, ref: Ref) -> bool:
        return ref.place.storage not in self.live

    def broadcast(self, ref: Ref, count: int | None = None) -> int:
        """The least number of elements needed of an operand whose elements serve several results each."""
        return share(self.count if count is None else count, prod(ref.shape), self.size)

    def where_whole(self, *counts: int) -> list[int]:
        """These counts if later calls need a whole result; otherwise zeros, because nothing is known."""
        given = list(counts) + [prod(r.shape) for r in self.refs[len(counts):]]
        return given if self.whole else [0] * len(self.refs)


def full(ref: Ref) -> int:
    return prod(ref.shape)


def pointwise(asked: Asked) -> list[int]:
    if cancelled(asked):
        return [0] * len(asked.refs)
    left = min([asked.size, *(telling(asked, r) for r in asked.refs if asked.constant(r))])
    count = max(0, asked.count - (asked.size - left))
    return [asked.broadcast(r, count) for r in asked.refs]


def is_zero(number: Any) -> bool:
    return type(number) in (int, float) and number == 0


def cancelled(asked: Asked) -> bool:
    """Whether a factor or exponent in the source is the literal zero."""
    return any(is_zero(asked.args.get(k)) for k in FACTORS.get(asked.name, ()))


def telling(asked: Asked, ref: Ref) -> int:
    """How many results need their other operands, if a program knows the values of the constant `ref`."""
    if ref.known is None or asked.name not in ("add", "sub", "rsub", "mul", "div") or not full(ref):
        return 0
    fine = torch.isfinite(ref.known)
    if asked.name in ("mul", "div"):
        fine &= ref.known != 0
    return int(torch.count_nonzero(fine)) * (asked.size // full(ref))


def selected(asked: Asked) -> list[int]:
    """where and masked_fill. What the condition selects is known only if it is constant."""
    mask: Any = asked.args.get("condition", asked.args.get("mask"))
    taken = {"self": False, "other": False}
    if mask.known is not None and mask.known.numel() and asked.constant(mask):
        true = int(torch.count_nonzero(mask.known)) * asked.size // mask.known.numel()
        here = true if asked.name == "where" else asked.size - true
        taken = {"self": here, "other": asked.size - here}
    out = []
    for ref in asked.refs:
        if ref is mask:
            out.append(asked.broadcast(ref))
            continue
        part = taken["self" if ref is asked.args.get("self") else "other"]
        out.append(asked.broadcast(ref, max(0, asked.count - (asked.size - part))))
    return out


def copied(asked: Asked) -> list[int]:
    return [0] + [asked.broadcast(r) for r in asked.refs[1:]]


def reduction(asked: Asked) -> list[int]:
    count, size = max(zip(asked.counts, asked.sizes), key=lambda p: p[0] / max(p[1], 1))
    return [share(count, full(r), size) for r in asked.refs]


def rows(asked: Asked, number: int) -> list[int]:
    """Counts if each result needs its whole row, of `number` rows. Affine operands are broadcast."""
    first, *others = asked.refs
    length = full(first) // max(number, 1)
    results = [share(n, 1, max(s // max(number, 1), 1)) for n, s in zip(asked.counts, asked.sizes)]
    return [max(results) * length] + [asked.broadcast(r) for r in others]


def along(asked: Asked) -> list[int]:
    """Rows along the argument `dim`."""
    shape, dim = asked.refs[0].shape, asked.args.get("dim")
    dim = -1 if dim is None else dim
    return rows(asked, prod(shape) // max(shape[dim], 1) if shape else 1)


def layer_norm(asked: Asked) -> list[int]:
    return rows(asked, full(asked.refs[0]) // max(prod(asked.args["normalized_shape"]), 1))


def group_norm(asked: Asked) -> list[int]:
    return rows(asked, asked.args["N"] * asked.args["group"])


def batch_norm(asked: Asked) -> list[int]:
    x, *others = asked.refs
    training = asked.args.get("training", asked.name == "_batch_norm_with_update")
    if not training:
        return [asked.broadcast(r) for r in asked.refs]
    # Running statistics: a program reads the old ones unless the momentum drops the old or the new ones.
    updated = {}
    if type(asked.args.get("momentum")) is float and 0 < asked.args["momentum"] < 1:
        given = asked.call.written
        updated = {p.storage: n for p, n in zip(given, asked.counts[len(asked.counts) - len(given):])}
    running = [r for r in (asked.args.get("running_mean"), asked.args.get("running_var")) if r is not None]
    channels = x.shape[1] if len(x.shape) > 1 else 1
    counts = rows(asked, channels)
    return counts[:1] + [updated.get(r.place.storage, 0) if any(r is s for s in running) else n
                         for r, n in zip(others, counts[1:])]


def product(asked: Asked) -> list[int]:
    a, b = (asked.refs[i] for i in PRODUCTS[asked.name])
    if cancelled(asked):
        return [0] * len(asked.refs)
    depth = a.shape[-1]
    across = max(asked.size // max(full(a) // max(depth, 1), 1), 1)  # the number of results that need a row of `a`
    down = max(asked.size // max(full(b) // max(depth, 1), 1), 1)
    counts = {id(a): share(asked.count, 1, across) * depth, id(b): share(asked.count, 1, down) * depth}
    if len(b.shape) == 2 and every_column(asked):
        counts[id(b)] = full(b)
    added = 0 if is_zero(asked.args.get("beta")) else 1
    return [counts.get(id(r), added * asked.broadcast(r)) for r in asked.refs]


def every_column(asked: Asked) -> bool:
    """Whether whole rows of a product's result are needed, as in `product(x)[:, -1]`."""
    columns = asked.shapes[0][-1]
    return any(n == prod(p.shape) and (1, columns) in zip(p.strides, p.shape)
               for p, n in asked.uses[0].items())


def hits(inputs: int, outputs: int, taps: int, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """For one axis: how many inputs are in some window, and how many taps meet an input."""
    met = 0
    for k in range(taps):
        first = max(0, share(padding - k * dilation, 1, stride))
        met += first < outputs and 0 <= first * stride - padding + k * dilation < inputs
    if dilation == 1 and taps >= stride:
        return max(0, min(inputs, (outputs - 1) * stride - padding + taps) - max(0, -padding)), met
    if outputs * taps > MOST_STEPS:
        return 0, met
    places = {o * stride - padding + k * dilation for o in range(outputs) for k in range(taps)}
    return sum(0 <= p < inputs for p in places), met


def axes(value: int | Sequence[int], count: int) -> list[int]:
    values: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * count if len(values) == 1 else values


def windows(inputs: Sequence[int], outputs: Sequence[int], taps: Sequence[int], stride: int | Sequence[int],
            padding: int | Sequence[int], dilation: int | Sequence[int]) -> tuple[int, int]:
    """Returns (covered inputs, taps that meet an input) over all axes."""
    count = len(taps)
    found = [hits(*v) for v in zip(inputs, outputs, taps, axes(stride, count), axes(padding, count),
                                   axes(dilation, count))]
    return prod(f[0] for f in found), prod(f[1] for f in found)


def convolution(asked: Asked) -> list[int]:
    x, w = asked.refs[:2]
    count = len(w.shape) - 2
    inputs, outputs, taps = x.shape[-count:], asked.shapes[0][-count:], w.shape[2:]
    how = asked.args["stride"], asked.args["padding"], asked.args["dilation"]
    covered, met = windows(inputs, outputs, taps, *how)
    if asked.args.get("transposed"):
        _, met = windows(outputs, inputs, taps, *how)
        kept = [p <= d * (k - 1) for k, p, d in zip(taps, axes(how[1], count), axes(how[2], count))]
        covered = prod(inputs) if all(kept) else 0
    return asked.where_whole(prod(x.shape[:-count]) * covered, prod(w.shape[:2]) * met)


def pool(asked: Asked) -> list[int]:
    x, taps = asked.refs[0], asked.args["kernel_size"]
    count = int(asked.name[asked.name.index("pool") + 4])
    taps = axes(taps, count)
    covered, _ = windows(x.shape[-count:], asked.shapes[0][-count:], taps,
                         asked.args.get("stride") or taps, asked.args.get("padding", 0),
                         asked.args.get("dilation", 1))
    return asked.where_whole(prod(x.shape[:-count]) * covered)


def attention(asked: Asked) -> list[int]:
    q, k, v = asked.refs[:3]
    mask = next((asked.args[n] for n in ("attn_mask", "attn_bias") if asked.args.get(n) is not None), None)
    if mask is not None and (mask.dtype == torch.bool or asked.constant(mask)):
        return [0, 0, 0] + [asked.broadcast(r) for r in asked.refs[3:]]
    queries, keys = q.shape[-2], k.shape[-2]
    seen = min(queries, keys) if asked.args.get("is_causal") else keys
    deciding = queries - 1 if asked.args.get("is_causal") else queries  # with a causal mask, the first row has one key
    if seen <= 1:
        deciding = 0
    scores = seen if deciding else 0
    return asked.where_whole(share(full(q), deciding, queries), share(full(k), scores, keys),
                             share(full(v), seen, keys))


def recurrent(asked: Asked) -> list[int]:
    """The whole sequence, its last step and the last states need every step."""
    steps_axis = 1 if asked.args.get("batch_first") else 0
    shape = asked.shapes[0]
    if len(shape) < 3 or shape[steps_axis] < 2:
        return [0] * len(asked.refs)
    strides = [prod(shape[i + 1:]) for i in range(len(shape))]
    last = (shape[steps_axis] - 1) * strides[steps_axis]
    step = prod(shape) // shape[steps_axis]
    at_last = not asked.args.get("bidirectional") and any(
        p.offset == last and n == step for p, n in asked.uses[0].items())
    return [full(r) for r in asked.refs] if asked.whole or at_last else [0] * len(asked.refs)


def half(asked: Asked) -> list[int]:
    """tril and triu: the other half is zero for any input."""
    kept = triangle(asked.name, asked.shapes[0], asked.args.get("diagonal", 0))
    return [max(0, asked.count - (asked.size - kept))]


def parts(asked: Asked) -> list[int]:
    """cat and stack: each argument is a part of the result."""
    return [max(0, asked.count - (asked.size - full(r))) for r in asked.refs]


def pad(asked: Asked) -> list[int]:
    x, pads = asked.refs[0], asked.args["pad"] if "pad" in asked.args else asked.args["padding"]
    if asked.name != "constant_pad_nd":
        return asked.where_whole(full(x) if min(pads) >= 0 else 0)
    sizes = list(x.shape)
    for i in range(len(pads) // 2):
        sizes[-1 - i] += min(pads[2 * i], 0) + min(pads[2 * i + 1], 0)
    inside = prod(max(n, 0) for n in sizes)
    return [max(0, asked.count - (asked.size - inside))]


def upsample(asked: Asked) -> list[int]:
    x = asked.refs[0]
    larger = all(o >= i for o, i in zip(asked.shapes[0], x.shape))
    return asked.where_whole(full(x) if larger else 0)


def picked(asked: Asked) -> list[int]:
    """Gathers. A program must read the indices, but they may all be equal."""
    source = asked.refs[0]
    if asked.name == "embedding":
        least = source.shape[-1]
    elif asked.name in ("index", "index_select"):
        least = asked.size // max(prod(torch.broadcast_shapes(*(r.shape for r in asked.refs[1:]))), 1)
    else:
        least = 1
    return asked.where_whole(min(least, full(source)))


def gathered(asked: Asked) -> list[int]:
    """One element of each row, which may be the same for all indices of the row. If a softmax made the row, that
    needs the whole row."""
    x, index = asked.refs[:2]
    if not x.shape:
        return asked.where_whole(1, full(index))
    dim = asked.args["dim"] % len(x.shape)
    producer = asked.producers.get(x.place.storage)
    whole = False
    if producer is not None and producer.func.overloadpacket.__name__ in ("_softmax", "_log_softmax"):
        along_dim = normal(producer)[0][1]
        whole = isinstance(along_dim, int) and along_dim % len(x.shape) == dim
    rows_read = full(index) // max(index.shape[dim], 1)
    return asked.where_whole(min(full(x), rows_read * (x.shape[dim] if whole else 1)), full(index))


def placed(asked: Asked) -> list[int]:
    """Writes into a copy. Needs the elements that are surely not overwritten. Sources may overwrite each other."""
    source: Any = asked.args.get("src", asked.args.get("source", asked.args.get("values")))
    index: Any = asked.args.get("index")
    adds = asked.name in ("index_add", "scatter_add") or asked.args.get("accumulate")
    over = asked.size  # how many elements a call without source and index may write
    if adds:
        over = 0
    elif asked.name == "scatter":
        over = full(index)
    elif asked.name != "index_put":  # index_put may broadcast its values
        over = full(source)
    once = asked.name in ("slice_scatter", "select_scatter", "diagonal_scatter")
    counts = []
    for i, ref in enumerate(asked.refs):
        if i == 0:
            counts.append(max(0, asked.count - over))
        elif ref is source:
            count = full(ref) if adds and asked.whole else 0
            counts.append(max(0, asked.count - (asked.size - full(ref))) if once else count)
        else:
            counts.append(full(ref) if asked.whole else 0)
    return counts


def nll(asked: Asked) -> list[int]:
    """Each row needs the value at its target. After a log-softmax, this value needs the whole row."""
    x, target, *others = asked.refs
    if asked.args.get("ignore_index", -100) >= 0:
        return [0] * len(asked.refs)
    producer = asked.producers.get(x.place.storage)
    softmax = producer is not None and producer.func.overloadpacket.__name__ == "_log_softmax"
    return asked.where_whole(full(x) if softmax else full(target), full(target), *[0] * len(others))


Rule = Callable[[Asked], list[int]]
RULES: dict[str, Rule] = {
    "where": selected, "masked_fill": selected, "copy": copied, "native_layer_norm": layer_norm,
    "_fused_rms_norm": layer_norm, "rms_norm": layer_norm, "native_group_norm": group_norm,
    "native_batch_norm": batch_norm, "_native_batch_norm_legit": batch_norm,
    "_native_batch_norm_legit_no_training": batch_norm, "cudnn_batch_norm": batch_norm,
    "_batch_norm_no_update": batch_norm, "_batch_norm_with_update": batch_norm,
    "_softmax": along, "_log_softmax": along, "_safe_softmax": along, "sort": along, "topk": along, "argsort": along,
    "kthvalue": along, "mode": along, "convolution": convolution, "_convolution": convolution,
    "tril": half, "triu": half, "cat": parts, "stack": parts, "constant_pad_nd": pad,
    "reflection_pad1d": pad, "reflection_pad2d": pad, "reflection_pad3d": pad,
    "replication_pad1d": pad, "replication_pad2d": pad, "replication_pad3d": pad,
    "embedding": picked, "gather": gathered, "index_select": picked, "index": picked, "take": picked,
    "index_put": placed, "scatter": placed, "scatter_add": placed, "index_add": placed,
    "index_copy": placed, "slice_scatter": placed, "select_scatter": placed, "diagonal_scatter": placed,
    "nll_loss_forward": nll, "nll_loss2d_forward": nll, "lstm": recurrent, "gru": recurrent,
    "rnn_tanh": recurrent, "rnn_relu": recurrent,
}


def keeps_some(asked: Asked) -> bool:
    """Whether an in-place call may keep elements without reading them."""
    constant = any(r.known is not None and asked.constant(r) for r in asked.refs) or any(
        type(asked.args.get(k)) in (int, float) and asked.args[k] == same
        for k, same in KEPT_BY.get(asked.name, ()))
    return asked.name in KEEPING or constant


def rule_of(asked: Asked) -> Rule:
    name = asked.name
    if name in RULES:
        return RULES[name]
    if name in PRODUCTS:
        return product
    if "scaled_dot_product" in name:
        return attention
    if "pool" in name and "adaptive" not in name and "fractional" not in name and "unpool" not in name:
        return pool
    if name.startswith("upsample"):
        return upsample
    if name in REDUCTIONS:
        return reduction
    if name in COPIES or torch.Tag.pointwise in asked.call.func.tags:
        return pointwise
    return Asked.where_whole if name in WHOLE else lambda _: [0] * len(asked.refs)


def of(asked: Asked) -> list[int]:
    """Returns a count for each tensor argument of the call."""
    return rule_of(asked)(asked)
