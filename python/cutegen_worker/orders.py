# SPDX-License-Identifier: Apache-2.0
"""Other ways to evaluate the reference, each as legitimate as PyTorch's own.

Each class is a dispatch mode: the reference runs unchanged, and the mode computes summing operators
differently. `Sequential` sums one term after another in float32, like a naive loop. `TF32Convolutions`
rounds the operands of convolutions, as cuDNN does by default. `EndlessSums` gives NaN if some order of
evaluation does: a sum with an infinite term is NaN in Kahan's algorithm, in a product split into three, and
over a whole tile in Winograd's algorithm. `ProductRange` gives NaN if the product of some consecutive factors
leaves the range of float32, because the result then depends on the order.

Three modes are for the float64 truth. `Accurate` computes GELU without cancellation. `RoundedAnew` rounds
every float64 result differently, which shows how accurate the truth itself is. `Shifted` moves the results of
products and convolutions by several of their own rounding errors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import whole

if TYPE_CHECKING:
    from torch._ops import OpOverload

Dims = int | Sequence[int] | None

CHUNK = 256  # terms in a chunk; chunks run in parallel
MOST_WORK = 1 << 28  # multiplications of one operator; larger operators get no sequential sum
MOST_PRODUCTS = 1 << 22  # products in memory at once
WINOGRAD = 6  # elements beyond the window that share a tile with an output
NORMAL_EXPONENTS = 126  # of float32
LEAST_EXPONENT = 150  # of float32's subnormal numbers, rounded
aten = torch.ops.aten


def to_tf32(t: Tensor) -> Tensor:
    """Rounds to the 10 mantissa bits that tensor cores read."""
    if t.dtype != torch.float32:
        return t
    bits = t.contiguous().view(torch.int32)
    rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(t), rounded, t)


def chain(terms: Tensor) -> Tensor:
    """The float32 sum over the last axis, one term after another.

    Rounding depends only on the partial sum, which float64 gives. So chunks run in parallel, each from its own
    partial sum, and their errors are added up.
    """
    count = terms.shape[-1]
    if count == 0:
        return terms.sum(-1)
    chunks = -(-count // CHUNK)
    if chunks == 1:
        return loop(torch.zeros(terms.shape[:-1], device=terms.device), terms)
    terms = torch.nn.functional.pad(terms, (0, chunks * CHUNK - count))
    terms = terms.view(*terms.shape[:-1], chunks, CHUNK)
    sums = terms.double().sum(-1)
    start = (sums.cumsum(-1) - sums).float()
    missed = loop(start.clone(), terms).double() - (start.double() + sums)
    return (sums.sum(-1) + missed.sum(-1)).float()


def loop(total: Tensor, terms: Tensor) -> Tensor:
    for i in range(terms.shape[-1]):
        total = total + terms[..., i]
    return total


def scanned(t: Tensor, dim: int) -> Tensor:
    """The running sums along `dim`, one term after another."""
    terms = t.float().movedim(dim, -1)
    count = terms.shape[-1]
    chunks = max(1, -(-count // CHUNK))
    terms = torch.nn.functional.pad(terms, (0, chunks * CHUNK - count))
    terms = terms.reshape(*terms.shape[:-1], chunks, CHUNK)
    known = terms.double().cumsum(-1)
    start = known[..., -1].cumsum(-1) - known[..., -1]
    own, sums = start.float(), []
    for i in range(CHUNK):
        own = own + terms[..., i]
        sums.append(own)
    exact = start.float().double()[..., None] + known
    missed = torch.stack(sums, -1).double() - exact
    before = missed[..., -1].cumsum(-1) - missed[..., -1]
    out = start[..., None] + known + missed + before[..., None]
    return out.float().flatten(-2)[..., :count].movedim(-1, dim)


def axes_of(t: Tensor, dims: Dims) -> list[int]:
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        return list(range(t.dim()))
    dims = [dims] if isinstance(dims, int) else dims
    return sorted(d % max(t.dim(), 1) for d in dims)


def total(t: Tensor, dims: Dims, keep: bool = False) -> Tensor:
    """The sequential sum over `dims` in float32."""
    axes = axes_of(t, dims)
    if not t.dim():
        return t.float()
    rest = [d for d in range(t.dim()) if d not in axes]
    terms = t.float().permute(*rest, *axes).reshape(*[t.shape[d] for d in rest], -1)
    out = chain(terms)
    for d in axes if keep else ():
        out = out.unsqueeze(d)
    return out


def count_of(t: Tensor, dims: Dims) -> int:
    return math.prod(t.shape[d] for d in axes_of(t, dims)) if t.dim() else 1


class Unknown(Exception):
    """An operator needs too much work for a sequential sum."""


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b of (..., M, K) and (..., K, N), summed over K in order."""
    a, b = a.float(), b.float()
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    batch = max(math.prod(a.shape[:-2]), math.prod(b.shape[:-2]))
    if batch * rows * depth * columns > MOST_WORK:
        raise Unknown
    if batch * rows * depth * columns <= MOST_PRODUCTS:
        return chain(a.unsqueeze(-2) * b.mT.unsqueeze(-3))
    out = torch.zeros(*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns,
                      device=a.device)
    for k in range(depth):
        out.addcmul_(a[..., k : k + 1], b[..., k : k + 1, :])
    return out


def convolution(x: Tensor, w: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, output_padding: Sequence[int],
                groups: int) -> Tensor:
    """Any convolution, summed over input channels and kernel positions in order."""
    x, w, spatial = x.float(), w.float(), w.dim() - 2
    shape = aten.convolution(x.to("meta"), w.to("meta"), None, stride, padding, dilation, transposed,
                             output_padding, groups).shape
    lists = [list(v) * spatial if len(v) == 1 else list(v) for v in (stride, padding, dilation)]
    work = math.prod(shape) * math.prod(w.shape[2:]) * x.shape[1] // groups
    if work > MOST_WORK:
        raise Unknown
    each = scattered if transposed else gathered
    out = each(x, w, shape, lists[0], lists[1], lists[2], groups)
    return out if bias is None else out + bias.float().view(1, -1, *[1] * spatial)


def gathered(x: Tensor, w: Tensor, shape: Sequence[int], stride: Sequence[int], padding: Sequence[int],
             dilation: Sequence[int], groups: int) -> Tensor:
    pad = [p for side in reversed(padding) for p in (side, side)]
    x = torch.nn.functional.pad(x, pad)
    x = x.view(x.shape[0], groups, -1, *x.shape[2:])
    w = w.view(groups, -1, *w.shape[1:])
    out = torch.zeros(shape[0], groups, shape[1] // groups, *shape[2:], device=x.device)
    for at in itertools.product(*[range(k) for k in w.shape[3:]]):
        window = tuple(slice(a * d, a * d + (o - 1) * s + 1, s)
                       for a, d, o, s in zip(at, dilation, shape[2:], stride))
        for c in range(x.shape[2]):
            weight_at: tuple[Any, ...] = (slice(None), slice(None), c, *at)
            input_at: tuple[Any, ...] = (slice(None), slice(None), slice(c, c + 1), *window)
            weight = w[weight_at]
            out.addcmul_(x[input_at],
                         weight.view(1, *weight.shape, *[1] * len(window)))
    return out.view(shape)


def scattered(x: Tensor, w: Tensor, shape: Sequence[int], stride: Sequence[int], padding: Sequence[int],
              dilation: Sequence[int], groups: int) -> Tensor:
    x = x.view(x.shape[0], groups, -1, *x.shape[2:])
    w = w.view(groups, -1, *w.shape[1:])
    sizes = [max(o + 2 * p, (i - 1) * s + (k - 1) * d + 1) for o, p, i, s, k, d in
             zip(shape[2:], padding, x.shape[3:], stride, w.shape[3:], dilation)]
    out = torch.zeros(shape[0], groups, shape[1] // groups, *sizes, device=x.device)
    for at in itertools.product(*[range(k) for k in w.shape[3:]]):
        window = tuple(slice(a * d, a * d + (i - 1) * s + 1, s)
                       for a, d, i, s in zip(at, dilation, x.shape[3:], stride))
        for c in range(x.shape[2]):
            weight_at: tuple[Any, ...] = (slice(None), c, slice(None), *at)
            output_at: tuple[Any, ...] = (slice(None), slice(None), slice(None), *window)
            weight = w[weight_at]
            out[output_at].addcmul_(
                x[:, :, c : c + 1], weight.view(1, *weight.shape, *[1] * len(window)))
    window = tuple(slice(p, p + o) for p, o in zip(padding, shape[2:]))
    inside: tuple[Any, ...] = (slice(None), slice(None), slice(None), *window)
    return out[inside].reshape(shape)


def moments(x: Tensor, dims: Dims) -> tuple[Tensor, Tensor, Tensor]:
    n = max(count_of(x, dims), 1)
    mean = total(x, dims, True) / n
    away = x.float() - mean
    return mean, away, total(away * away, dims, True)


def in_dtype_of(t: Tensor, value: Tensor) -> Tensor:
    return value.to(t.dtype)


class Sequential(TorchDispatchMode):
    """Sums in order, in float32. `whole` is False if some operator had too much work."""

    def __init__(self, tf32: bool = False) -> None:
        super().__init__()
        self.whole, self.tf32 = True, tf32

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if self.tf32:
            args = round_operands(func, args)
        way = SUMS.get(func)
        if way is None or not floats(args):
            return func(*args, **kwargs)
        try:
            out = way(*args, **kwargs)
        except Unknown:
            self.whole = False
            return func(*args, **kwargs)
        return func(*args, **kwargs) if out is None else out


class TF32Convolutions(TorchDispatchMode):
    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        return func(*round_operands(func, args), **(kwargs or {}))


def is_depthwise(input_shape: Sequence[int], groups: int) -> bool:
    """Whether a convolution has several groups of one input channel each, which cuDNN computes in float32."""
    return groups > 1 and input_shape[1] == groups


def round_operands(func: OpOverload, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if func is not aten.convolution.default or is_depthwise(args[0].shape, args[8]):
        return args
    return (to_tf32(args[0]), to_tf32(args[1]), *args[2:])


def floats(args: tuple[Any, ...]) -> bool:
    """Whether the first tensor has a dtype whose sums PyTorch computes in float32."""
    first = next((a for a in args if isinstance(a, torch.Tensor)), None)
    return first is not None and first.dtype in (torch.float32, torch.float16, torch.bfloat16)


def addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return in_dtype_of(a, beta * bias.float() + alpha * product(a, b))


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return in_dtype_of(a, product(a, b))


def addmv(bias: Tensor, a: Tensor, x: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return in_dtype_of(a, beta * bias.float() + alpha * product(a, x[:, None])[:, 0])


def conv(x: Tensor, w: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
    return in_dtype_of(x, convolution(x, w, bias, *rest))


def sum_of(t: Tensor, dims: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor | None:
    if dtype not in (None, t.dtype):
        return None
    return in_dtype_of(t, total(t, dims, keepdim))


def mean_of(t: Tensor, dims: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor | None:
    if dtype not in (None, t.dtype):
        return None
    return in_dtype_of(t, total(t, dims, keepdim) / max(count_of(t, dims), 1))


def cumsum(t: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor | None:
    return None if dtype not in (None, t.dtype) or not t.dim() else in_dtype_of(t, scanned(t, dim))


def variance(t: Tensor, dims: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    correction = 1 if correction is None else correction
    squares = moments(t, dims)[2] / max(count_of(t, dims) - correction, 0)
    if not keepdim:
        squares = squares.squeeze(axes_of(t, dims)) if t.dim() else squares
    return squares


def var(t: Tensor, dims: Dims = None, **more: Any) -> Tensor:
    return in_dtype_of(t, variance(t, dims, **more))


def std(t: Tensor, dims: Dims = None, **more: Any) -> Tensor:
    return in_dtype_of(t, variance(t, dims, **more).sqrt())


def var_mean(t: Tensor, dims: Dims = None, *, correction: float | None = None,
             keepdim: bool = False) -> tuple[Tensor, Tensor | None]:
    return (var(t, dims, correction=correction, keepdim=keepdim), mean_of(t, dims, keepdim))


def scaled(out: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    out = out if weight is None else out * weight.float()
    return out if bias is None else out + bias.float()


def layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
               eps: float) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    mean, away, squares = moments(x, dims)
    scale = torch.rsqrt(squares / max(count_of(x, dims), 1) + eps)
    return in_dtype_of(x, scaled(away * scale, weight, bias)), mean, scale


def group_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, channels: int, inner: int, groups: int,
               eps: float) -> tuple[Tensor, Tensor, Tensor]:
    each = x.reshape(n, groups, -1)
    mean, away, squares = moments(each, [2])
    scale = torch.rsqrt(squares / max(each.shape[2], 1) + eps)
    by_channel = [1, channels] + [1] * (x.dim() - 2)
    out = scaled((away * scale).view(x.shape),
                 *[t if t is None else t.view(by_channel) for t in (weight, bias)])
    return in_dtype_of(x, out), mean.view(n, groups), scale.view(n, groups)


def batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
               running_var: Tensor | None, training: bool, momentum: float,
               eps: float) -> tuple[Tensor, Tensor, Tensor] | None:
    if not training:
        return None
    known = aten.native_batch_norm(x, weight, bias, running_mean, running_var, True, momentum, eps)
    dims = [0, *range(2, x.dim())]
    _, away, squares = moments(x, dims)
    scale = torch.rsqrt(squares / max(count_of(x, dims), 1) + eps)
    by_channel = [1, -1] + [1] * (x.dim() - 2)
    out = scaled(away * scale, *[t if t is None else t.view(by_channel) for t in (weight, bias)])
    return in_dtype_of(x, out), known[1], known[2]


def rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None, eps: float | None) -> tuple[Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    mean = total(x.float() * x.float(), dims, True) / max(count_of(x, dims), 1)
    scale = torch.rsqrt(mean + eps)
    return in_dtype_of(x, scaled(x.float() * scale, weight, None)), scale


def softmax(x: Tensor, dim: int, to_float: bool = False) -> Tensor | None:
    if to_float or not x.dim():
        return None
    away = torch.exp(x.float() - x.float().amax(dim, True))
    return in_dtype_of(x, away / total(away, dim, True))


def log_softmax(x: Tensor, dim: int, to_float: bool = False) -> Tensor | None:
    if to_float or not x.dim():
        return None
    away = x.float() - x.float().amax(dim, True)
    return in_dtype_of(x, away - torch.log(total(torch.exp(away), dim, True)))


def logsumexp(x: Tensor, dims: int | list[int], keepdim: bool = False) -> Tensor:
    largest = x.float().amax(dims, True)
    largest = torch.where(torch.isfinite(largest), largest, 0.0)
    out = torch.log(total(torch.exp(x.float() - largest), dims, keepdim))
    return in_dtype_of(x, out + (largest if keepdim else largest.reshape(out.shape)))


def vector_norm(x: Tensor, order: float = 2, dims: Dims = None, keepdim: bool = False, *,
                dtype: torch.dtype | None = None) -> Tensor | None:
    if dtype not in (None, x.dtype) or order not in (1, 2):
        return None
    terms = x.float().abs() if order == 1 else x.float() * x.float()
    out = total(terms, dims, keepdim)
    return in_dtype_of(x, out if order == 1 else out.sqrt())


def loss(elements: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def reduced(x: Tensor, y: Tensor, reduction: int = 1, *rest: Any) -> Tensor:
        each = elements(x.float(), y.float(), *rest)
        if reduction == 0:
            return in_dtype_of(x, each)
        whole = total(each, None)
        return in_dtype_of(x, whole / max(each.numel(), 1) if reduction == 1 else whole)

    return reduced


def huber(x: Tensor, y: Tensor, delta: float = 1.0) -> Tensor:
    away = (x - y).abs()
    return torch.where(away < delta, 0.5 * away * away, delta * (away - 0.5 * delta))


def smooth_l1(x: Tensor, y: Tensor, beta: float = 1.0) -> Tensor:
    return huber(x, y, beta) / beta if beta > 0 else (x - y).abs()


def attention(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0, causal: bool = False, *,
              attn_mask: Tensor | None = None,
              scale: float | None = None) -> tuple[Tensor, Tensor] | None:
    """The flash operator's first result. Only a backward pass uses the second."""
    if dropout:
        return None
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if k.shape[-3] != q.shape[-3]:  # grouped queries
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = product(q.float() * scale, k.mT)
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask.float()
    highest = scores.amax(-1, True)
    weights = torch.exp(scores - highest.masked_fill(highest == -math.inf, 0.0))  # a row without keys: zeros
    out = product(weights, v) / total(weights, -1, True).masked_fill(highest == -math.inf, 1.0)
    return in_dtype_of(q, out), torch.logsumexp(scores, -1)


def overloads(*names: str) -> Iterator[OpOverload]:
    """Yields the overloads that this PyTorch has."""
    for name in names:
        packet, _, overload = name.partition(".")
        found = getattr(getattr(aten, packet, None), overload or "default", None)
        if found is not None:
            yield found


SUMS = {
    func: way
    for names, way in (
        (("mm", "bmm"), matmul),
        (("addmm", "baddbmm"), addmm),
        (("mv",), lambda a, x: in_dtype_of(a, product(a, x[:, None])[:, 0])),
        (("addmv",), addmv),
        (("dot", "vdot"), lambda a, b: in_dtype_of(a, chain(a.float() * b.float()))),
        (("convolution",), conv),
        (("sum", "sum.dim_IntList"), sum_of),
        (("mean", "mean.dim"), mean_of),
        (("cumsum",), cumsum),
        (("var.correction",), var),
        (("std.correction",), std),
        (("var_mean.correction",), var_mean),
        (("native_layer_norm",), layer_norm),
        (("native_group_norm",), group_norm),
        (("native_batch_norm",), batch_norm),
        (("_fused_rms_norm",), rms_norm),
        (("_softmax", "_safe_softmax"), softmax),
        (("_log_softmax",), log_softmax),
        (("logsumexp",), logsumexp),
        (("linalg_vector_norm",), vector_norm),
        (("mse_loss",), loss(lambda x, y: (x - y) * (x - y))),
        (("huber_loss",), loss(huber)),
        (("smooth_l1_loss",), loss(smooth_l1)),
        (("_scaled_dot_product_flash_attention_for_cpu",), attention),
    )
    for func in overloads(*names)
}


def next_in_group(alike: Tensor) -> Tensor:
    """For each rank, the next rank of its group; after the last one the first. `alike`: where a rank and the next one
    belong to one group."""
    here = torch.arange(alike.shape[-1] + 1, device=alike.device).expand(*alike.shape[:-1], -1)
    edge = torch.zeros_like(alike[..., :1]) if alike.shape[-1] else alike.new_zeros(*alike.shape[:-1], 1)
    first = torch.where(torch.cat([edge, alike], -1), 0, here).cummax(-1).values
    return torch.where(torch.cat([alike, edge], -1), here + 1, first)


class Ties(TorchDispatchMode):
    """Puts equal elements in the order of their positions (`first`), or each in the next one's place.

    PyTorch promises no order of equal elements for topk, and for sort unless it is stable.
    """

    def __init__(self, first: bool) -> None:
        super().__init__()
        self.first = first

    def sorted(self, x: Tensor, dim: int, falling: bool) -> tuple[Tensor, Tensor]:
        values, at = torch.sort(x, dim=dim, descending=falling, stable=True)
        if self.first or not x.dim() or not x.shape[dim]:
            return values, at
        row = values.movedim(dim, -1)
        alike = (row[..., 1:] == row[..., :-1]) | (row[..., 1:] != row[..., 1:]) & (row[..., :-1] != row[..., :-1])
        after = next_in_group(alike).movedim(-1, dim)
        return values.gather(dim, after), at.gather(dim, after)

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        named = kwargs or {}
        if func is aten.sort.stable and not named.get("stable") or func is aten.sort.default:
            rest = args[1:]
            dim = named.get("dim", rest[0] if rest else -1)
            return self.sorted(args[0], dim, named.get("descending", rest[1] if len(rest) > 1 else False))
        if func is aten.topk.default and args[0].dim():
            x, count, dim, largest = (*args, *(-1, True)[len(args) - 2:])[:4]
            values, at = self.sorted(x, dim, largest)
            return values.narrow(dim, 0, count), at.narrow(dim, 0, count)
        return func(*args, **named)


class EndlessSums(TorchDispatchMode):
    """Gives NaN if a sum has an infinite or undefined term, or a product in a sum overflows."""

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        way = ENDLESS.get(func)
        if way is None or not floats(args):
            return out
        first = out[0] if isinstance(out, tuple) else out
        bad = ~torch.isfinite(first) | way(first, *args, **(kwargs or {}))
        marked = first.masked_fill(bad, math.nan)
        return (marked, *out[1:]) if isinstance(out, tuple) else marked


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """GELU in float64 without 1 + tanh or 1 + erf, which cancel if the result is small."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return x * torch.sigmoid(2 * inner)
    return 0.5 * x * torch.special.erfc(-x / math.sqrt(2))


class Accurate(TorchDispatchMode):
    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        if func is aten.gelu.default and args[0].dtype == torch.float64:
            return gelu(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


class RoundedAnew(TorchDispatchMode):
    """Moves each element of each new float64 tensor up or down by its last bit. `shiftable`: how many operators
    `Shifted` would move in a way in which no change of the inputs moves them."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator, self.shiftable = generator, 0
        self.computed: set[int] = set()  # addresses of results; a later tensor at the same address does no harm

    def is_computed(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() in self.computed

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        from_computed = any(map(self.is_computed, args))
        self.shiftable += func in SQUARES or from_computed and (func in SQUARES_OF_SUMS or func in NORMS)
        out = func(*args, **(kwargs or {}))
        if func.is_view:
            return out
        if isinstance(out, torch.Tensor) and out.dtype == torch.float64 and not any(out is a for a in args):
            moved = out * (1 + 2.0**-52 * signs_like(out, self.generator))
            out = torch.where(out.abs() <= whole.MOST, out, moved) if whole.keeps_whole(func, args) else moved
        if from_computed or func not in COPIES:
            results = out if isinstance(out, (tuple, list)) else (out,)
            self.computed |= {r.untyped_storage().data_ptr() for r in results if isinstance(r, torch.Tensor)}
        return out


def signs_like(t: Tensor, generator: torch.Generator) -> Tensor:
    """A random -1 or 1 for each element of a float64 tensor."""
    sign = torch.randint(0, 2, t.shape, generator=generator, dtype=torch.int8, device=generator.device)
    return sign.double().mul_(2).sub_(1)


class Shifted(TorchDispatchMode):
    """Moves each element of a float64 product, convolution or sum by `size` times the root of the sum of its squared
    terms, randomly up or down. With `size` = 1 rounding, rounded terms move an element about as far. It also moves the
    operands of variances and norms. No change of the inputs moves tanh(x) for a large x, but a sum of such terms may
    cancel, and its rounding then depends on the order. A sum of whole numbers stays if the sum of its squared terms,
    and therefore every partial sum, is at most `exact`: every order then gives the same result.
    """

    def __init__(self, generator: torch.Generator, size: float, exact: float) -> None:
        super().__init__()
        self.generator, self.size, self.exact = generator, size, exact

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        if func in NORMS:
            return func(self.moved(args[0]), *args[1:], **(kwargs or {}))
        out = func(*args, **(kwargs or {}))
        squares = SQUARES.get(func) or SQUARES_OF_SUMS.get(func)
        if squares is None or out.dtype != torch.float64:
            return out
        terms = torch.nan_to_num(squares(*args, **(kwargs or {})), 0, 0, 0).clamp_(min=0)
        noise = terms.sqrt()
        if whole.keeps_whole(func, args):
            noise.masked_fill_(terms <= self.exact, 0.0)
        return noise.mul_(signs_like(out, self.generator)).mul_(self.size).add_(out)

    def moved(self, t: Tensor) -> Tensor:
        if t.dtype != torch.float64:
            return t
        # With signs alone, two terms would move by the same amount in the same direction in half of the draws.
        by = torch.rand(t.shape, generator=self.generator, dtype=torch.float64, device=t.device).add_(1).mul_(0.5)
        return by.mul_(signs_like(t, self.generator)).mul_(self.size).add_(1).mul_(t)


def squares_of_product(a: Tensor, b: Tensor) -> Tensor:
    return (a * a) @ (b * b)


def squares_of_addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return squares_of_product(a, b) * alpha**2


def squares_of_convolution(x: Tensor, w: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
    out: Tensor = aten.convolution(x * x, w * w, None, *rest)
    return out


def with_squares(func: OpOverload) -> Callable[..., Tensor]:
    """Gives the operator the squares of its float64 operands."""
    def way(*args: Any, **more: Any) -> Tensor:
        out: Tensor = func(*(a * a if isinstance(a, torch.Tensor) and a.dtype == torch.float64 else a for a in args),
                           **more)
        return out
    return way


# These compute the sum of the squared terms of each element of a result.
SQUARES: dict[OpOverload, Callable[..., Tensor]] = {
    **{func: way for names, way in (
        (("mm", "bmm", "mv", "dot"), squares_of_product),
        (("addmm", "baddbmm", "addmv"), squares_of_addmm),
        (("convolution",), squares_of_convolution),
    ) for func in overloads(*names)},
    **{func: with_squares(func) for func in overloads("_trilinear")},
}


def squares_of_mean(t: Tensor, *rest: Any, **more: Any) -> Tensor:
    out = torch.mean(t * t, *rest, **more)
    return out * (out.numel() / max(t.numel(), 1))


# The same for sums without weights. A softmax is not among them, because its terms cannot cancel.
SQUARES_OF_SUMS: dict[OpOverload, Callable[..., Tensor]] = {
    **{func: with_squares(func) for func in overloads(
        "sum", "sum.dim_IntList", "nansum", "cumsum", "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d", "index_add", "scatter_add", "trace", "upsample_linear1d", "upsample_bilinear2d",
        "upsample_trilinear3d")},
    **{func: squares_of_mean for func in overloads("mean", "mean.dim")},
}
COPIES = set(overloads("_to_copy", "clone", "copy_"))
NORMS = set(overloads("var.correction", "std.correction", "var_mean.correction", "native_layer_norm",
                      "native_group_norm", "native_batch_norm"))


def endless(t: Tensor) -> Tensor:
    return ~torch.isfinite(t)


def endless_product(_: Tensor, a: Tensor, b: Tensor, *rest: Any, **more: Any) -> Tensor:
    return endless(a).any(-1, True) | endless(b).any(-2, True)


def endless_sum(out: Tensor, t: Tensor, dims: Any = None, *rest: Any, **more: Any) -> Tensor:
    if isinstance(dims, (int, float)) and not isinstance(dims, bool) and rest:
        dims = rest[0]  # a norm's order precedes its dims
    bad = endless(t)
    axes = axes_of(t, dims if not isinstance(dims, (float, bool)) else None)
    for d in axes:
        bad = bad.any(d, True)
    return bad.reshape(out.shape) if bad.numel() == out.numel() else torch.zeros_like(out, dtype=torch.bool)


def endless_convolution(out: Tensor, x: Tensor, w: Tensor, bias: Tensor | None, stride: Sequence[int],
                        padding: Sequence[int], dilation: Sequence[int], transposed: bool, outer: Sequence[int],
                        groups: int) -> Tensor:
    spatial = w.dim() - 2
    bad = endless(x).any(1, True).float()
    pool = {1: torch.nn.functional.max_pool1d, 2: torch.nn.functional.max_pool2d,
            3: torch.nn.functional.max_pool3d}[spatial]
    bad = pool(bad, 2 * WINOGRAD + 1, 1, WINOGRAD)
    ones = torch.ones(1, 1, *w.shape[2:], device=x.device)
    near = aten.convolution(bad, ones, None, stride, padding, dilation, transposed, outer, 1) > 0
    weights = endless(w).flatten(2).any(-1)
    weights = weights.any(0) if transposed else weights.any(1)
    if weights.numel() != out.shape[1]:
        weights = weights.any().expand(out.shape[1])
    return near.expand(out.shape) | weights.view(1, -1, *[1] * spatial)


def endless_rows(out: Tensor, t: Tensor, dim: int, *rest: Any, **more: Any) -> Tensor:
    """A softmax over nothing but -infinity is 0 / 0 by definition, but PyTorch may give zeros."""
    return (~torch.isfinite(t)).all(dim, True).expand(out.shape)


def endless_scan(out: Tensor, t: Tensor, dim: int, *rest: Any, **more: Any) -> Tensor:
    return endless(t).to(torch.int32).cumsum(dim) > 0


def endless_cross(out: Tensor, x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    first, second = x.roll(-1, dim) * y.roll(-2, dim), x.roll(-2, dim) * y.roll(-1, dim)
    return endless(first) | endless(second)


ENDLESS = {
    func: way
    for names, way in (
        (("mm", "bmm", "mv", "dot"), lambda out, a, b: endless_product(
            out, a, b if b.dim() > 1 else b[:, None]).reshape(out.shape)),
        (("addmm", "baddbmm"), lambda out, bias, a, b, **more: endless_product(out, a, b)),
        (("convolution",), endless_convolution),
        (("sum", "sum.dim_IntList", "mean", "mean.dim", "logsumexp"), endless_sum),
        (("linalg_vector_norm",), lambda out, t, order=2, dims=None, *rest, **more:
            endless_sum(out, t, dims)),
        (("cumsum",), endless_scan),
        (("_softmax", "_safe_softmax", "_log_softmax"), endless_rows),
        (("linalg_cross",), endless_cross),
    )
    for func in overloads(*names)
}


class ProductRange(TorchDispatchMode):
    """Gives NaN where the product of some consecutive factors leaves the normal range, and after that. `seen`: whether
    any product ran."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func not in PRODUCTS or not floats(args):
            return out
        self.seen = True
        t, dim = args[0], args[1] if len(args) > 1 else None
        if dim is None:
            t, dim = t.reshape(-1), 0
        wide = out_of_order(t, dim)
        if func is not aten.cumprod.default:
            wide = wide.select(dim, -1).reshape(out.shape)
        return out.masked_fill(wide, math.nan)


PRODUCTS = set(overloads("cumprod", "prod", "prod.dim_int"))


def out_of_order(t: Tensor, dim: int) -> Tensor:
    """Where some order of multiplication overflows, or underflows on the way to a normal result or a larger subnormal
    one.

    A product that is itself too small does not count, because every order gives zero.
    """
    zero = (t == 0).to(torch.int32).cumsum(dim) > 0
    size = torch.where(torch.isfinite(t) & (t != 0), t, 1.0).double().abs().log2()
    level = size.cumsum(dim)
    lowest = level.cummin(dim).values.clamp(max=0)
    highest = level.cummax(dim).values.clamp(min=0)
    overflows = (level - lowest).cummax(dim).values >= NORMAL_EXPONENTS
    deepest = (level - highest).cummin(dim).values
    underflows = deepest <= -NORMAL_EXPONENTS
    comes_back = (level > -NORMAL_EXPONENTS) | (level > -LEAST_EXPONENT) & (level - highest > deepest + 1)
    endless = (~torch.isfinite(t)).to(torch.int32).cumsum(dim) > 0  # infinity times an underflow
    return overflows | (underflows & (endless | comes_back & ~zero))
