# SPDX-License-Identifier: Apache-2.0
"""Checks the export against the module computed in float64. Usage: python test_@FILE@.py [cuda:0]

Each run uses fresh inputs and weights, and compares the error with the error of the module in PyTorch.
Without a GPU it can only check the reference, which computes what the kernels do not support.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from load import Model, data, exported, reference

TIMES_NATIVE = 4  # how much larger than the module's error in PyTorch the largest error may be
LARGE = 1 << 22  # elements; without a GPU, larger tasks are skipped
DTYPES = {"fp32": False, "tf32": True, "fp16": True, "bf16": True}


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [t for item in items for t in tensors(item)]


def changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: changed(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        made = [changed(item, change) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def called(model: Any, inputs: Any) -> list[torch.Tensor]:
    return tensors(model(**inputs) if isinstance(inputs, dict) else model(*inputs))


def doubled(t: torch.Tensor) -> torch.Tensor:
    return t.double() if t.is_floating_point() and t.dtype != torch.float64 else t.clone()


def mutated(model: Any, inputs: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, current tensor) of the tensors that a call writes in place."""
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    given = dict(zip(exported.names, exported.by_name(args, kwargs) or ()))
    for name in data.get("mutated", []):
        value = given.get(name)
        if value is None:
            value = model
            for part in name.split("."):
                value = getattr(value, part)
        yield name, value


def pair(device: torch.device, seed: int) -> tuple[Any, Any, Any]:
    """The exported module and the reference with the same weights, and inputs for both."""
    init: list[Any] = getattr(reference, "get_init_inputs", list)()
    torch.manual_seed(seed)
    with torch.device(device):
        plain = reference.Model(*init)
    torch.manual_seed(seed)
    with torch.device(device):
        made = Model(*init)
        inputs = reference.get_inputs()
    for module in (plain, made):
        module.to(device).train(data["train_mode"])
    same = all(torch.equal(a, b) for a, b in zip(plain.state_dict().values(), made.state_dict().values()))
    assert same and list(plain.state_dict()) == list(made.state_dict()), "the two modules have different weights"
    return made, plain, changed(inputs, lambda t: t.to(device))


def judge(got: torch.Tensor, native: torch.Tensor, truth: torch.Tensor) -> float:
    """The error relative to the permitted error."""
    if got.shape != truth.shape or got.dtype != native.dtype:
        raise AssertionError(f"{got.dtype} of {tuple(got.shape)}, not {native.dtype} of {tuple(truth.shape)}")
    if not got.is_floating_point():
        return float("inf") if bool((got != native).any()) else 0.0
    if not got.numel():
        return 0.0
    finite = truth.isfinite()
    if not torch.equal(finite, got.isfinite()):
        return float("inf")
    error, usual = (torch.where(finite, (x.double() - truth).abs(), 0).max().item() for x in (got, native))
    largest = torch.where(finite, truth.abs(), 0).max().item()
    return error / (TIMES_NATIVE * usual + 4 * torch.finfo(got.dtype).eps * largest + 1e-300)


def check(device: torch.device, seed: int) -> bool:
    made, plain, inputs = pair(device, seed)
    own = [changed(inputs, torch.Tensor.clone) for _ in range(2)]
    torch.backends.cuda.matmul.allow_tf32 = DTYPES[data["math_mode"]]
    torch.backends.cudnn.allow_tf32 = DTYPES[data["math_mode"]] or data.get("tf32_convolutions", False)
    with torch.no_grad():
        exact, exact_inputs = copy.deepcopy(plain).double(), changed(inputs, doubled)
        truth = called(exact, exact_inputs)
        native, got = called(plain, own[0]), called(made, own[1])
    assert len(native) == len(got), "the number of results differs"
    final = [dict(mutated(m, i)) for m, i in ((made, own[1]), (plain, own[0]), (exact, exact_inputs))]
    kept = [(a, b) for a, b in zip(tensors(inputs), tensors(own[1])) if not any(b is t for t in final[0].values())]
    assert all(torch.equal(a, b) for a, b in kept), "the program wrote an input"
    judged = [*zip(got, native, truth), *((final[0][n], final[1][n], final[2][n]) for n in final[0])]
    worst = max(judge(g, n, t) for g, n, t in judged)
    print(f"seed {seed}: error {worst:.2f} of the permitted error", flush=True)
    return worst <= 1


def main() -> int:
    device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cuda:0" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        size = sum(torch.Size(s).numel() for s in data["shapes"][0]["tensors"].values())
        print("no GPU: checking only the reference")
        if size > LARGE:
            print(f"skipped: {size} elements are too many without a GPU")
            return 0
    elif exported.trouble(device):
        print("the kernels are not used:", exported.trouble(device))
    good = [check(device, seed) for seed in (1, 2, 3)]
    print("ok" if all(good) else "WRONG")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
