# SPDX-License-Identifier: Apache-2.0
"""The floating-point operations of one ATen call. A fused multiply-add counts as two."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .record import Out, Ref

FREE = {
    "view", "reshape", "_unsafe_view", "_reshape_alias", "permute", "transpose", "t", "expand", "unsqueeze",
    "squeeze", "slice", "select", "split", "split_with_sizes", "unbind", "chunk", "cat", "stack",
    "clone", "copy", "_to_copy", "detach", "alias", "contiguous", "as_strided", "unfold", "flip",
    "roll", "repeat", "empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full",
    "full_like", "arange", "lift_fresh", "lift_fresh_copy", "embedding", "gather", "index",
    "index_select", "index_put", "scatter", "constant_pad_nd", "reflection_pad2d", "new_zeros",
    "new_ones", "new_full", "new_empty", "fill", "zero", "eye", "tril", "triu", "where",
    "masked_fill", "im2col", "col2im", "pixel_shuffle", "linspace", "scalar_tensor", "diagonal",
    "replication_pad2d", "channel_shuffle", "native_channel_shuffle", "select_scatter",
    "slice_scatter", "diag_embed", "expand_as", "view_as", "movedim", "narrow", "bernoulli",
}
PER_OUTPUT = {"addcmul": 3, "addcdiv": 3, "lerp": 3, "sigmoid": 4, "silu": 5, "gelu": 8, "mish": 8, "softplus": 3,
              "tanh": 5, "elu": 3, "hardswish": 4, "hardsigmoid": 3, "celu": 3, "selu": 3}
PER_INPUT = {
    "sum": 1, "mean": 1, "prod": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "argmax": 1,
    "argmin": 1, "any": 1, "all": 1, "var": 4, "std": 4, "var_mean": 4, "std_mean": 4, "norm": 2,
    "linalg_vector_norm": 2, "logsumexp": 4, "cumsum": 1, "cumprod": 1, "logcumsumexp": 4,
    "_softmax": 5, "_log_softmax": 5, "native_layer_norm": 8, "native_group_norm": 8,
    "native_batch_norm": 8, "_native_batch_norm_legit": 8, "_fused_rms_norm": 5,
    "_native_batch_norm_legit_no_training": 4, "cudnn_batch_norm": 8, "nll_loss_forward": 1,
    "nll_loss2d_forward": 1, "aminmax": 2,
    "mse_loss": 3, "smooth_l1_loss": 4, "huber_loss": 4,
}


def pooled(name: str, refs: list[Ref], args: list[Any], outs: list[Out]) -> float | None:
    """The window size of a pooling call; None for other calls."""
    if "pool" not in name or "unpool" in name:
        return None
    if name.startswith("_adaptive") or name.startswith("adaptive"):
        return prod(refs[0].shape) / max(1, prod(outs[0][0]))
    window = args[1] if len(args) > 1 else 1
    dims = int(name[name.index("pool") + 4]) if name[-1] == "d" or "d_" in name else 1
    if isinstance(window, int):
        return window**dims
    return prod(window) if len(window) != 1 else window[0] ** dims


def contraction(name: str, refs: list[Ref], outs: list[Out]) -> int | None:
    shape = outs[0][0]
    if name in ("mm", "bmm", "mv", "dot", "vdot", "linear", "matmul"):
        return 2 * prod(shape) * refs[0].shape[-1]
    if name in ("addmm", "baddbmm", "addmv", "addbmm"):
        return (2 * refs[1].shape[-1] + 1) * prod(shape)
    return None


def convolution(refs: list[Ref], args: list[Any], outs: list[Out]) -> int:
    x, w = refs[0].shape, refs[1].shape
    transposed = bool(args[6]) if len(args) > 6 else False
    bias = prod(outs[0][0]) if len(args) > 2 and args[2] is not None else 0
    spread = prod(x) if transposed else prod(outs[0][0])
    return 2 * spread * prod(w[1:]) + bias


def attention(refs: list[Ref], outs: list[Out]) -> int:
    q, k, v = (r.shape for r in refs[:3])
    return 2 * prod(q) * k[-2] + 5 * prod(q[:-1]) * k[-2] + 2 * prod(q[:-1]) * k[-2] * v[-1]


def recurrent(refs: list[Ref]) -> int:
    """Counts each weight matrix (the last tensors of rank 2) once per time step and batch row."""
    steps = prod(refs[0].shape[:-1])
    return 2 * steps * sum(prod(r.shape) for r in refs[1:] if len(r.shape) == 2)


def of(name: str, refs: list[Ref], args: list[Any], outs: list[Out]) -> float:
    """`name`: without overload. `refs`: tensor arguments. `outs`: (shape, dtype) of the results."""
    bare = name.rstrip("_") if not name.endswith("__") else name
    if not outs or bare in FREE:
        return 0
    if bare in ("convolution", "_convolution", "conv2d", "conv1d", "conv3d"):
        return convolution(refs, args, outs)
    found = contraction(bare, refs, outs)
    if found is not None:
        return found
    if "scaled_dot_product" in bare:
        return attention(refs, outs)
    if bare in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        return recurrent(refs)
    window = pooled(bare, refs, args, outs)
    if window is not None:
        return prod(outs[0][0]) * window
    if bare in PER_INPUT and refs:
        return prod(refs[0].shape) * PER_INPUT[bare]
    return prod(outs[0][0]) * PER_OUTPUT.get(bare, 1)
