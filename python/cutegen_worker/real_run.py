# SPDX-License-Identifier: Apache-2.0
"""Runs a module on real tensors, to find out whether it accepts a shape.

A trace on meta tensors looks at no values, and some meta kernels do not compare all sizes. So a trace may accept a
shape at which forward() raises on real tensors. Most operators check a call on meta tensors as they do on real ones; a
module that uses only such operators needs no real run.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from .errors import WorkerError, blame
from .facts import Facts
from .record import Ref
from .source import Source, clean_state
from .trace import SIZES, Trace, build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .record import Call

MANY = 1 << 22  # elements from which on a run uses several threads
MOST_ELEMENTS, MOST_FLOPS = 130_000_000, 2e9  # larger shapes are no test shapes (eval/sets/test_shapes.cpp)

# Operators that raise on real tensors only if they raise on meta tensors, besides those with the tag `pointwise`.
FACTORIES = {"empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like",
             "arange", "linspace", "eye", "scalar_tensor", "lift_fresh", "rand", "rand_like", "randn", "randn_like",
             "randint", "randint_like", "randperm", "new_empty", "new_zeros", "new_ones", "new_full", "normal",
             "uniform", "random", "fill", "zero"}
VIEWS = {"view", "_unsafe_view", "_reshape_alias", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze",
         "slice", "select", "split", "split_with_sizes", "unbind", "unfold", "diagonal", "clone", "_to_copy",
         "detach", "alias", "copy", "cat", "stack", "repeat", "flip", "roll", "constant_pad_nd", "reflection_pad1d",
         "reflection_pad2d", "replication_pad2d", "tril", "triu", "im2col", "pixel_shuffle", "pixel_unshuffle",
         "masked_fill", "where"}
REDUCTIONS = {"sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "prod", "var", "std",
              "var_mean", "std_mean", "norm", "linalg_vector_norm", "logsumexp", "cumsum", "cumprod", "_softmax",
              "_log_softmax", "_safe_softmax", "sort", "topk", "kthvalue", "avg_pool2d", "avg_pool3d",
              "max_pool2d_with_indices", "_adaptive_avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d"}
PRODUCTS = {"mm", "bmm", "baddbmm", "mv", "dot", "convolution", "_trilinear", "_euclidean_dist", "_cdist_forward",
            "native_layer_norm", "_fused_rms_norm", "native_batch_norm", "glu", "_prelu_kernel", "mse_loss",
            "smooth_l1_loss", "huber_loss"}
# These run if their sizes agree, which the trace has checked (nll_loss2d: agree.py), and their indices are in range.
INDEXING = {"embedding", "index_select", "gather", "index", "nll_loss_forward", "nll_loss2d_forward"}
CERTAIN = FACTORIES | VIEWS | REDUCTIONS | PRODUCTS
DIVISIONS = {"div", "floor_divide", "remainder", "fmod", "pow", "__lshift__", "__rshift__"}


def name_of(func: Any) -> str:
    name: str = func.overloadpacket.__name__
    return name if name.endswith("__") else name.removesuffix("_")


def is_certain(func: Any) -> bool:
    """Whether a call of the operator raises on real tensors only if it raises on meta tensors."""
    name = name_of(func)
    return name in CERTAIN or (torch.Tag.pointwise in func.tags and name not in DIVISIONS)


def fits_call(call: Call) -> bool:
    """Whether the sizes and dtypes of this call show that it runs, although is_certain() does not hold."""
    name, refs = name_of(call.func), call.refs
    if name == "div" and call.kwargs.get("rounding_mode") is None:
        return True
    if name in DIVISIONS:  # integers have no quotient by zero
        divisor = call.args[1] if len(call.args) > 1 else 0
        return divisor.dtype.is_floating_point if isinstance(divisor, Ref) else divisor != 0
    if name == "addmm":
        return becomes(refs[0].shape, call.outs[0][0])
    if name == "binary_cross_entropy_with_logits":
        return len({r.shape for r in refs}) == 1
    if name == "native_group_norm":
        return all(r.shape == (refs[0].shape[1],) for r in refs[1:])
    return False


def fits_if_in_range(call: Call) -> bool:
    """Whether this call, which an index goes to, runs if the index is in range."""
    name = name_of(call.func)
    return name in INDEXING and (name != "nll_loss2d_forward" or call.args[2] is None)


def becomes(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a tensor of this shape expands to the wanted one."""
    try:
        return torch.broadcast_shapes(tuple(shape), tuple(wanted)) == tuple(wanted)
    except RuntimeError:
        return False


def is_doubtful(trace: Trace, facts: Facts) -> bool:
    """Whether the module may raise on real tensors although the trace did not."""
    return not all(map(is_certain, trace.outside)) or not all(
        is_certain(c.func) or fits_call(c) or (c.id in facts.kept and fits_if_in_range(c))
        for c in trace.recorder.calls)


def failure(source: Source, constants: dict[str, int], trace: Trace, train: bool) -> str | None:
    """What forward() raises at these sizes on real tensors, or None. `trace`: the module's at these sizes.

    Draws the inputs as the evaluator does: reduces indices that are too large for what they index.
    """
    facts = Facts(trace)
    if not is_doubtful(trace, facts):
        return None
    limits = facts.limits
    before = torch.get_num_threads()
    try:
        if trace.elements() < MANY:
            torch.set_num_threads(1)
        with clean_state(source.file), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            model, inputs = build(source.run(constants), source.file)
            model.train(train)
            args, kwargs = inputs.map(lambda name, t: limits[name].keep(t) if name in limits else t)
            with blame(source.file, "forward()", SIZES):
                model(*args, **kwargs)
    except WorkerError as error:
        return error.message
    finally:
        torch.set_num_threads(before)
    return None


def is_small(trace: Trace) -> bool:
    """Whether the shape may be a test shape, and a real run takes little time."""
    return trace.elements() <= MOST_ELEMENTS and trace.flops <= MOST_FLOPS
