// SPDX-License-Identifier: Apache-2.0
// Compares other evaluation orders of the reference (python/cutegen_worker/orders.py) with slow
// loops.
#include <gmock/gmock.h>

#include "torch/testing/test_script.h"

namespace cutegen::torch {
namespace {

constexpr const char* kOrdersScript = R"PY(
import math, torch
from torch.nn import functional as F
from cutegen_worker import orders, values
from cutegen_worker.overflow import Overflows

torch.manual_seed(1)

def naive(terms):
    total = torch.zeros(terms.shape[:-1])
    for i in range(terms.shape[-1]):
        total = total + terms[..., i]
    return total

def error(value, truth):
    return ((value.double() - truth) / truth).pow(2).mean().sqrt().item()

def sums():
    x = torch.rand(16, 5000)
    with orders.Sequential() as summed:
        got = x.sum(1)
    truth = x.double().sum(1)
    assert summed.whole and 0.9 < error(got, truth) / error(naive(x), truth) < 1.1
    assert error(got, truth) > 10 * error(x.sum(1), truth)
    return "ok"

def scans():
    x = torch.rand(3, 3000, 2)
    with orders.Sequential():
        got = x.cumsum(1)
    slow, total = [], torch.zeros(3, 2)
    for i in range(3000):
        total = total + x[:, i]
        slow.append(total)
    truth = x.double().cumsum(1)
    assert 0.9 < error(got, truth) / error(torch.stack(slow, 1), truth) < 1.1
    return "ok"

def unsure():
    x = torch.linspace(-12, 4, 400).double()
    with orders.Accurate():
        for way in ("tanh", "none"):
            got = F.gelu(x, approximate=way)
            assert torch.allclose(got, F.gelu(x, approximate=way), rtol=1e-12, atol=1e-14)
            assert bool((got[:50] < 0).all())
    by_hand = lambda: 0.5 * x * (1 + torch.tanh(2 * x))
    with orders.RoundedAnew(torch.Generator().manual_seed(1)):
        moved = (by_hand() - by_hand()).abs()
    assert 1e-16 < moved[:100].max() < 1e-14
    return "ok"

def shifted():
    # Honest results in tf32 stay within the tolerance, 4 times the largest change, at every ReLU's kink.
    g = torch.Generator().manual_seed(1)
    x, w, b = (torch.randn(s, generator=g) for s in ((4, 8, 66, 66), (32, 8, 3, 3), (32,)))
    a = torch.randn(900, 64, generator=g)
    modules = (lambda t, w, b: F.relu(F.conv2d(t, w, b)), (x, w, b)), \
              (lambda a, b: F.relu(a @ b), (a, a.T.contiguous())), \
              (lambda c, a, b: F.relu(torch.addmm(c, a, b)), (b[:1], a, a.T.contiguous()))
    for run, tensors in modules:
        wide = [t.double() for t in tensors]
        truth = run(*wide)
        honest = run(*[orders.to_tf32(t).double() for t in tensors])
        change = 2.0**-10 * truth
        for size in (4, -4):
            g.manual_seed(2)
            with orders.Shifted(g, size * 2.0**-10, 0):
                change = torch.maximum(change, (run(*wide) - truth).abs() / 4)
        crossed = (truth == 0) & (honest > 0)
        assert crossed.sum() > 5
        assert bool((honest - truth).abs().le(4 * change).all())
        with orders.RoundedAnew(g) as anew:
            run(*wide)
        assert anew.shiftable
    with orders.RoundedAnew(g) as anew:
        x.double().sum(1).relu()  # a change of the inputs moves these terms
    assert not anew.shiftable
    return "ok"

def cancelled():
    # For a large x, no change of x moves tanh(x), but the order of 1 - 1 + small decides whether the small one remains.
    g = torch.Generator().manual_seed(3)
    x = 1e3 * torch.randn(64, 6, 32, generator=g)
    x[:, 0], x[:, 1], x[:, 2:] = 1e3, -1e3, 1e-20
    image = lambda x: torch.tanh(x).view(8, 8, 6, 32)
    sums = {"sum": lambda x: torch.tanh(x).sum(1), "mean": lambda x: torch.tanh(x).mean((1, 2)),
            "cumsum": lambda x: torch.tanh(x).cumsum(1)[:, 1:], "variance": lambda x: torch.tanh(x[:, :1]).var((1, 2)),
            "norm": lambda x: F.layer_norm(torch.tanh(x[:, 0]), (32,)),
            "pool": lambda x: F.avg_pool2d(image(x), (6, 32)), "all": lambda x: torch.tanh(x).sum()}
    for name, run in sums.items():
        truth = run(x.double())
        for change in (1 + 2.0**-23, 1 - 2.0**-23):
            assert torch.allclose(run(x.double() * change), truth, rtol=1e-6, atol=1e-25), name
        with orders.RoundedAnew(g) as anew:
            run(x.double())
        assert anew.shiftable, name
        with orders.Shifted(g, 2.0**-23, 0):
            moved = (run(x.double()) - truth).abs()
        least = {"variance": 1e-15, "norm": 1e-7, "mean": 1e-10, "pool": 1e-10}.get(name, 5e-8)
        assert bool((moved > least).all()) and moved.max() < 1e-4, (name, moved.min(), moved.max())
    return "ok"

def products():
    for rows, depth, columns in ((24, 2048, 20), (100, 600, 100)):
        a, b = torch.rand(rows, depth), torch.rand(depth, columns)
        with orders.Sequential():
            got = F.linear(a, b.T)
        truth = a.double() @ b.double()
        slow = naive(a[:, None] * b.T[None])
        assert 0.8 < error(got, truth) / error(slow, truth) < 1.25
    return "ok"

def close(what, run):
    plain = run()
    with orders.Sequential() as summed:
        got = run()
    assert summed.whole and got.dtype == plain.dtype and got.shape == plain.shape, what
    step = 2e-5 if plain.dtype == torch.float32 else 2e-2
    assert torch.allclose(got.float(), plain.float(), rtol=step, atol=step), what

def operators():
    for dtype in (torch.float32, torch.bfloat16):
        x, w, w8 = (torch.randn(s, dtype=dtype) for s in ((4, 8, 16), (16,), (8,)))
        close("layer_norm", lambda: F.layer_norm(x, (16,), w, w))
        close("group_norm", lambda: F.group_norm(x, 2, w8, w8))
        close("instance_norm", lambda: F.instance_norm(x))
        close("batch_norm", lambda: F.batch_norm(x, None, None, w8, w8, True))
        close("rms_norm", lambda: F.rms_norm(x, (16,), w))
        close("softmax", lambda: torch.softmax(x, 1))
        close("log_softmax", lambda: torch.log_softmax(x, -1))
        close("logsumexp", lambda: torch.logsumexp(x, (1, 2), keepdim=True))
        close("norm", lambda: torch.norm(x, dim=1, keepdim=True))
        close("norm 1", lambda: torch.norm(x, p=1, dim=(0, 2)))
        close("mean", lambda: x.mean((0, 2)))
        close("mean of all", lambda: x.mean())
        close("var", lambda: x.var(-1))
        close("std", lambda: x.std((0, 1), keepdim=True))
        close("mse", lambda: F.mse_loss(x, x + 1))
        close("smooth_l1", lambda: F.smooth_l1_loss(x, x * 2))
        close("einsum", lambda: torch.einsum("bij,bkj->bik", x, x))
        close("grouped attention", lambda: F.scaled_dot_product_attention(
            x[None], x[None, :1], x[None, :1], enable_gqa=True))
        close("attention", lambda: F.scaled_dot_product_attention(x[None], x[None], x[None],
                                                                  is_causal=True))
    return "ok"

def convolutions():
    for transposed in (False, True):
        for n in (1, 2, 3):
            x = torch.randn(2, 6, *[9, 8, 7][:n])
            w = torch.randn(6 if transposed else 4, 2 if transposed else 3, *[3] * n)
            more = dict(stride=2, padding=1, groups=2)
            more |= dict(output_padding=1) if transposed else dict(dilation=2)
            f = getattr(F, f"conv{'_transpose' if transposed else ''}{n}d")
            close(f.__name__, lambda: f(x, w, torch.randn(4, generator=torch.Generator()), **more))
    return "ok"

def shipped():
    x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    with orders.TF32Convolutions():
        got = F.conv2d(x, w)
    assert torch.equal(got, F.conv2d(orders.to_tf32(x), orders.to_tf32(w)))
    assert not torch.equal(got, F.conv2d(x, w))
    w = torch.randn(6, 1, 3, 3)  # cuDNN computes depthwise convolutions in float32
    with orders.TF32Convolutions():
        got = F.conv2d(x, w, groups=3)
    assert torch.equal(got, F.conv2d(x, w, groups=3))
    return "ok"

def endless():
    a, b = torch.randn(5, 7), torch.randn(7, 6)
    a[1, 2], b[3, 4] = math.inf, -math.inf
    with orders.EndlessSums():
        got = torch.isnan(a @ b)
    want = torch.zeros(5, 6, dtype=torch.bool)
    want[1], want[:, 4] = True, True
    assert torch.equal(got, want)
    x = torch.zeros(1, 2, 40)
    x[0, 1, 20] = math.inf
    with orders.EndlessSums():
        got = torch.isnan(F.conv1d(x, torch.ones(3, 2, 3), padding=1))
        mean = x.mean(-1)
    assert got[0, 0].nonzero().flatten().tolist() == list(range(13, 28))
    assert torch.isnan(mean).tolist() == [[False, True]]
    rows = torch.tensor([[-math.inf, -math.inf], [-math.inf, 1.0]])
    with orders.EndlessSums():
        assert torch.isnan(torch.softmax(rows, 1))[:, 0].tolist() == [True, False]
    return "ok"

def ranges():
    x = torch.ones(5, 300)
    x[0] = 0.5                     # too small in every order: zero
    x[1, :140], x[1, 140:] = 0.25, 4.0  # comes back
    x[2] = 1.5                     # overflows at 2^126
    x[3, 5], x[3, 6], x[3, 290] = 1e-30, 1e-30, math.inf  # infinity times what may be zero
    x[4, :140], x[4, 140:145] = 0.5, 2.0  # a subnormal number, then a larger one
    with orders.ProductRange() as products:
        got = torch.isnan(torch.cumprod(x, 1)).sum(1).tolist()
    assert products.seen and got[0] == 0 and got[3] == 10, got
    assert 60 < got[1] < 160 and 80 < got[2] < 90 and 150 < got[4] < 165, got
    return "ok"

def too_much():
    orders.MOST_WORK = 1000
    with orders.Sequential() as summed:
        torch.rand(20, 20) @ torch.rand(20, 20)
    assert not summed.whole
    return "ok"

def overflows():
    big = 2e38
    x = torch.tensor([[big, big, -big], [big, big, big], [-big, -big, -big], [1e45, -1e42, 1.0],
                      [big, 1.0, 1.0]], dtype=torch.float64)
    w = torch.ones(3, 1).double()
    for run in (lambda: x @ w, lambda: x.sum(1, keepdim=True)):
        with Overflows(0.1) as sums:
            got = run().flatten().tolist()
        assert sums.seen and math.isnan(got[0]) and math.isnan(got[3]), got
        assert got[1:3] == [math.inf, -math.inf] and got[4] == big, got
    with Overflows(0.1):
        mean = x.mean(1).tolist()  # 2e38, if each term is divided
    assert math.isnan(mean[1]) and mean[4] < big, mean
    with Overflows(0.1) as sums:
        assert torch.equal(x[4:] @ w, torch.tensor([[big]], dtype=torch.float64))
    assert not sums.seen
    return "ok"

for what in (sums, scans, unsure, shifted, cancelled, products, operators, convolutions, shipped, endless, ranges,
             overflows, too_much):
    try:
        print(what.__name__ + ":", what(), flush=True)
    except Exception as failure:
        print(what.__name__ + ":", repr(failure), flush=True)
)PY";

std::string orders_said(const std::string& check) {
  static const TestScript script(kOrdersScript);
  return script.said(check);
}

TEST(Orders, SumsAndProductsInOrderHaveTheErrorOfALoop) {
  EXPECT_EQ(orders_said("sums"), "ok");
  EXPECT_EQ(orders_said("products"), "ok");
  EXPECT_EQ(orders_said("scans"), "ok");
}

TEST(Orders, TheTruthIsOnlyAsSureAsItsOwnRounding) {
  EXPECT_EQ(orders_said("unsure"), "ok");
}

TEST(Orders, OneOfTwoShiftsCrossesEveryKink) {
  EXPECT_EQ(orders_said("shifted"), "ok");
}

TEST(Orders, AShiftMovesSumsThatNoChangeOfTheInputsMoves) {
  EXPECT_EQ(orders_said("cancelled"), "ok");
}

TEST(Orders, EveryOperatorThatSumsGivesItsResult) {
  EXPECT_EQ(orders_said("operators"), "ok");
  EXPECT_EQ(orders_said("convolutions"), "ok");
}

TEST(Orders, ConvolutionsAsPyTorchShipsRoundTheirOperands) {
  EXPECT_EQ(orders_said("shipped"), "ok");
}

TEST(Orders, AnInfiniteTermMayMakeASumUndefined) {
  EXPECT_EQ(orders_said("endless"), "ok");
}

TEST(Orders, ARunningProductThatComesBackDependsOnTheOrder) {
  EXPECT_EQ(orders_said("ranges"), "ok");
}

TEST(Orders, APartialSumThatMayOverflowMakesTheSumUncertain) {
  EXPECT_EQ(orders_said("overflows"), "ok");
}

TEST(Orders, WhatTakesTooMuchWorkIsNotSummedInOrder) {
  EXPECT_EQ(orders_said("too_much"), "ok");
}

}  // namespace
}  // namespace cutegen::torch
