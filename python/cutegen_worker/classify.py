# SPDX-License-Identifier: Apache-2.0
"""The workload class of a graph: its heaviest kind of work, then the kinds fused with it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from . import flops
from .graph import normal

if TYPE_CHECKING:
    from .record import Call, Ref

ORDER = ["attention", "recurrent", "transposed conv", "depthwise", "conv", "matmul", "gemv", "loss",
         "scan", "softmax", "norm", "pooling", "reduction", "elementwise"]
MATMUL = {"mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "addbmm"}
GEMV = {"mv", "addmv", "dot", "vdot"}
SCAN = {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "_cummax_helper", "_cummin_helper"}
SOFTMAX = {"_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax"}
NORM = {"native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "_fused_rms_norm",
        "batch_norm", "layer_norm", "_batch_norm_with_update", "_batch_norm_no_update"}
REDUCTION = {"sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "var", "std", "norm",
             "linalg_vector_norm", "logsumexp", "any", "all", "var_mean", "aminmax"}
LOSS = {"nll_loss_forward", "nll_loss2d_forward", "mse_loss", "huber_loss", "smooth_l1_loss",
        "binary_cross_entropy", "soft_margin_loss", "xlogy"}
RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu", "mkldnn_rnn_layer", "_thnn_fused_lstm_cell"}


def kind(call: Call) -> str | None:
    name = call.func.overloadpacket.__name__.rstrip("_")
    refs = call.refs
    if name in ("max", "min", "median", "mode", "sort", "topk"):
        return "reduction" if len(refs) == 1 else "elementwise"
    if name in ("convolution", "_convolution"):
        return convolution(call, refs)
    if name in MATMUL:
        m, n = call.outs[0][0][-2:] if len(call.outs[0][0]) > 1 else (1, 1)
        return "gemv" if 1 in (m, n) else "matmul"
    for names, result in ((GEMV, "gemv"), (SCAN, "scan"), (SOFTMAX, "softmax"), (NORM, "norm"),
                          (LOSS, "loss"), (REDUCTION, "reduction"), (RECURRENT, "recurrent")):
        if name in names:
            return result
    if "scaled_dot_product" in name:
        return "attention"
    if "pool" in name:
        return "pooling"
    return None if name in flops.FREE else "elementwise"


def convolution(call: Call, refs: list[Ref]) -> str:
    args, _ = normal(call)
    if args[6]:
        return "transposed conv"
    return "depthwise" if args[8] > 1 and args[8] == refs[0].shape[1] else "conv"


def users_after(calls: list[Call], start: int) -> list[Call]:
    """The calls after `start` that depend on its results."""
    names, out = set(calls[start].out_names), []
    for call in calls[start + 1 :]:
        if any(r.name in names for r in call.refs):
            names.update(call.out_names)
            out.append(call)
    return out


def hand_written(calls: list[Call], kinds: list[str | None]) -> dict[int, str]:
    """Finds softmax and norms that are written out: a reduction, then a call that combines its result with a tensor of
    its input's shape."""
    found: dict[int, str] = {}
    for i, call in enumerate(calls):
        if kinds[i] != "reduction":
            continue
        shape = call.refs[0].shape
        for user in users_after(calls, i)[:12]:
            name = user.func.overloadpacket.__name__.rstrip("_")
            if name in ("div", "mul", "sub") and user.outs[0][0] == shape:
                if prod(call.outs[0][0]) < prod(shape):
                    exp = any(c.func.overloadpacket.__name__ == "exp" for c in calls[:i])
                    sum_ = call.func.overloadpacket.__name__ in ("sum", "mean", "linalg_vector_norm",
                                                                 "norm", "var", "std")
                    if sum_:
                        found[i] = "softmax" if exp and name == "div" else "norm"
                    break
    return found


def is_attention(calls: list[Call], kinds: list[str | None]) -> bool:
    """Whether a softmax stands between two matrix products of activations."""
    for i, k in enumerate(kinds):
        if k != "softmax" and not masked_scores(calls[i]):
            continue
        before = any(is_batched(c) for c in calls[:i])
        if before and any(is_batched(c) for c in users_after(calls, i)):
            return True
    return False


def masked_scores(call: Call) -> bool:
    return call.func.overloadpacket.__name__.rstrip("_") == "masked_fill"


def is_batched(call: Call) -> bool:
    return call.func.overloadpacket.__name__ in ("bmm", "baddbmm")


def is_recurrent(calls: list[Call], kinds: list[str | None], types: set[str]) -> bool:
    if "recurrent" in kinds or types & {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"}:
        return True
    gates = [c for c in calls if c.func.overloadpacket.__name__ in ("tanh", "sigmoid")]
    products = [c for c in calls if c.func.overloadpacket.__name__ in ("mm", "addmm")]
    return len(gates) >= 4 and len(products) >= 8 and len({c.outs[0][0] for c in gates}) == 1


def absorb(kinds: list[str | None], special: dict[int, str]) -> set[str]:
    """The classes that occur. The steps of a written-out norm do not count separately."""
    present = {k for k in kinds if k}
    if special:
        present.update(special.values())
        if all(k != "reduction" or i in special for i, k in enumerate(kinds)):
            present.discard("reduction")
        heavy = present - {"elementwise", "reduction", "norm", "softmax"}
        if not heavy and sum(k == "elementwise" for k in kinds) <= 6:
            present.discard("elementwise")
    return present


def workload(calls: list[Call], types: set[str], inputs: int, outputs: Sequence[Sequence[int]]) -> str:
    """`types`: class names of the modules. `inputs`: the number of floating inputs. `outputs`: their shapes."""
    kinds = [kind(c) for c in calls]
    present = absorb(kinds, hand_written(calls, kinds))
    if is_recurrent(calls, kinds, types):
        present = {"recurrent"} | (present & {"conv"})
    elif is_attention(calls, kinds):
        present = (present | {"attention"}) - {"softmax", "elementwise", "reduction"}
        if all(is_batched(c) for c, k in zip(calls, kinds) if k == "matmul"):
            present.discard("matmul")
    heavy = present & {"conv", "transposed conv", "depthwise", "matmul", "gemv", "attention"}
    if outputs and all(prod(s) == 1 for s in outputs) and inputs >= 2 and not heavy:
        return "loss"
    names = [n for n in ORDER if n in present]
    return "+".join(names[:4]) if names else "elementwise"
