// SPDX-License-Identifier: Apache-2.0
// When two results count as the same function (python/cutegen_worker/baseline.py).
#include <gtest/gtest.h>

#include "torch/testing/test_script.h"

namespace cutegen::torch {
namespace {

constexpr const char* kBaselineScript = R"PY(
import torch
from cutegen_worker import baseline

def near(wanted, got):
    return baseline.distance(wanted, got) <= baseline.farthest(wanted.dtype)

def float8():
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        x = torch.linspace(-400, 400, 999).to(dtype)
        step = (x.view(torch.int8) - 1).view(dtype)  # towards zero; the last bit of zero is a NaN
        step = torch.where(x.float() == 0, x.float(), step.float()).to(dtype)
        assert 0.02 < baseline.distance(x, step), dtype
        assert near(x, step), dtype
        assert not near(x, torch.zeros_like(x.float()).to(dtype))
        assert not near(x, (-x.float()).to(dtype))
    return "ok"

def others():
    x = torch.linspace(-1, 1, 999)
    assert near(x, x + 0.01) and not near(x, x + 0.03)
    assert near(x.bfloat16(), (x + 0.01).bfloat16()) and not near(x.bfloat16(), (x + 0.03).bfloat16())
    whole = torch.arange(5)
    assert near(whole, whole) and not near(whole, whole + 1)
    return "ok"

for what in (float8, others):
    try:
        print(what.__name__ + ":", what(), flush=True)
    except Exception as error:
        print(what.__name__ + ":", repr(error), flush=True)
)PY";

TEST(Baselines, AStepOfFloat8IsNoOtherFunction) {
  static const TestScript script(kBaselineScript);
  EXPECT_EQ(script.said("float8"), "ok");
  EXPECT_EQ(script.said("others"), "ok");
}

}  // namespace
}  // namespace cutegen::torch
