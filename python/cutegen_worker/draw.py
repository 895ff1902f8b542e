# SPDX-License-Identifier: Apache-2.0
"""Fresh values: inputs of each family, and re-drawn parameters.

What an input plainly promises is kept: zeros of a triangular matrix, symmetry, rows that are
probabilities, values from a set of two. The rest of the made values is replaced.
"""

import torch

SIGNED, HEAVY = "signed", "heavy"
FAMILIES = ("made", SIGNED, HEAVY)


def input_values(made, family, generator):
    """`made` with the values of `family`; integers and booleans as they are."""
    if family == "made" or not made.is_floating_point() or made.numel() == 0:
        return made
    if made.numel() > 16 and made.unique().numel() <= 2:
        return made
    draw = signed if family == SIGNED else heavy
    new = draw(made.shape, generator).to(made.dtype)
    return keep_promises(made, new)


def normal(shape, generator):
    return torch.randn(shape, generator=generator)


def signed(shape, generator):
    """Normal values with an affine map of the whole tensor and one of each leading row."""
    scale = torch.exp(0.5 * normal((), generator))
    values = normal(shape, generator) * scale + 0.5 * normal((), generator)
    if len(shape) >= 2:
        row = (shape[0],) + (1,) * (len(shape) - 1)
        values = values * torch.exp(0.3 * normal(row, generator)) + 0.3 * normal(row, generator)
    return values


def heavy(shape, generator):
    """Log-normal magnitudes with random signs, and a few large values at random places."""
    values = torch.exp(1.5 * normal(shape, generator)) * torch.sign(normal(shape, generator))
    flat = values.view(-1)
    count = max(1, flat.numel() // 4096)
    where = torch.randint(flat.numel(), (count,), generator=generator)
    flat[where] = torch.sign(normal((count,), generator)) * 50
    return values


def keep_promises(made, new):
    square = made.dim() >= 2 and made.shape[-1] == made.shape[-2]
    zeros = made == 0
    if zeros.float().mean() >= 0.2:
        new = new.masked_fill(zeros, 0)
    elif square and torch.equal(made, made.mT):
        new = (new + new.mT) / 2
    elif made.dim() and made.shape[-1] > 1 and made.min() >= 0:
        sums = made.double().sum(-1)
        if torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
            new = torch.softmax(new, -1)
    return new


def redraw(model, generator):
    """Constant parameters and running statistics get values of their own."""
    with torch.no_grad():
        for parameter in model.parameters():
            vary(parameter, generator)
        for module in model.modules():
            for name in ("running_mean", "running_var"):
                buffer = getattr(module, name, None)
                if isinstance(buffer, torch.Tensor):
                    vary(buffer, generator)


def vary(tensor, generator):
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return
    first = tensor.flatten()[0]
    if not torch.all(tensor == first):
        return  # the constructor drew it from a law, with this run's seed
    noise = normal(tensor.shape, generator).to(tensor.dtype)
    tensor.copy_(0.1 * noise if first == 0 else tensor * torch.exp(0.2 * noise))
