// SPDX-License-Identifier: Apache-2.0
// The worker's sets at the official shape. Without a GPU, the same code runs on host memory.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>

#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

// Compares the set with make_set()'s for the same seed, and the margin with a slow computation.
constexpr const char* kOfficialScript = R"PY(
import mmap, sys, torch
from cutegen_worker import draw, official, values
from cutegen_worker.source import clean_state

class Memory:
    def __init__(self, count):
        self.bytes = torch.zeros(count, dtype=torch.uint8)
    def tensor(self, offset, shape, dtype):
        count = torch.Size(shape).numel() * dtype.itemsize
        return self.bytes[offset:offset + count].view(dtype).view(shape)
    def close(self):
        pass

source = '''
import torch
from torch import nn
rows = 64
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(32, 48)
    def forward(self, x):
        return torch.softmax(self.l(x), -1) MIXED
def get_inputs():
    return [torch.randn(rows, 32)]
def get_init_inputs():
    return []
'''

def request_for(family, mode, mixed=""):
    slots = [("x", "value", "f32", [64, 32], 0), ("l.weight", "value", "f32", [48, 32], 8192),
             ("l.bias", "value", "f32", [48], 16384), ("out", "native", "f32", [64, 48], 32768),
             ("out", "truth", "f64", [64, 48], 65536), ("out", "margin", "f64", [64, 48], 131072)]
    return {"source": source.replace("MIXED", mixed), "file": "/nowhere/x.py", "constants": {},
            "train_mode": False, "math_mode": mode, "family": family, "seed": 5,
            "shape": "official", "outputs": ["out"], "dtypes": ["f32"],
            "slots": [dict(zip(("name", "part", "dtype", "shape", "offset"), s), memory=0)
                      for s in slots]}

def made(request):
    memory = [Memory(1 << 20)]
    with clean_state(request["file"]):
        return official.make(request, torch.device("cpu"), memory), official.Places(request["slots"], memory)

def slow_margin(truth, native, moved):
    key, error = truth.abs().reshape(-1), (native.double() - truth).abs().reshape(-1)
    error[~torch.isfinite(error)] = 0
    order = [i for i in sorted(range(key.numel()), key=lambda i: (float(key[i].nan_to_num(0)), i))
             if key[i] == key[i]]
    out = error.clone()
    for rank, i in enumerate(order):
        out[i] = max(float(error[j]) for j in order[max(0, rank - 32):rank + 33])
    moved = moved.reshape(-1)
    return torch.copysign(torch.maximum(out, moved.abs()), moved)

def same(a, b):
    return torch.equal(torch.nan_to_num(a, 7, 8, 9), torch.nan_to_num(b, 7, 8, 9))

def check(family, mode):
    request = request_for(family, mode)
    notes, places = made(request)
    reply, fd = values.make_set(request)
    assert notes == reply["notes"], notes
    window, parts = mmap.mmap(fd, reply["bytes"]), {}
    for s in reply["slots"]:
        dtype = official.BY_NAME[s["dtype"]]
        t = torch.frombuffer(window, dtype=dtype, count=s["bytes"] // dtype.itemsize,
                             offset=s["offset"]).view(s["shape"])
        parts[s["part"]] = t
        if s["part"] not in ("sensitivity", "sequential"):
            assert same(places.view(s["name"], s["part"]), t), (family, s["name"], s["part"])
    want = slow_margin(parts["truth"], parts["native"], parts["sensitivity"])
    margin = places.view("out", "margin").reshape(-1)
    assert torch.equal(margin, want) and torch.equal(margin.signbit(), want.signbit()), family

def parts_of(mixed):
    request = request_for("signed", "fp32", mixed)
    with clean_state(request["file"]):
        reference, _ = values.prepare(values_source(request), request, 3, draw.ANY)
        whole = reference.run(lambda _, t: t.double(), torch.float64)
        split = official.in_parts(reference, lambda _, t: t.double(), torch.float64, whole, 64, 4)
    return whole[0], split[0]

def values_source(request):
    from cutegen_worker.source import Source
    return Source(request["source"], request["file"])
)PY";

constexpr const char* kChecks = R"PY(
from cutegen_worker.errors import WorkerError

def sets():
    for family in draw.FAMILIES:
        check(family, "fp32")
    check("signed", "tf32")
    check("signed", "bf16")
    return "ok"

def stretches():
    official.WINDOW = 1000
    truth, native = torch.randn(3000).double(), torch.randn(3000)
    margin = torch.zeros(3000, dtype=torch.float64)
    official.widen(margin, native, truth)
    for at in (0, 1000, 2000):
        part = slice(at, at + 1000)
        assert torch.equal(margin[part], official.smoothed(truth[part], native[part]))
    return "ok"

def batch():
    whole, split = parts_of("")
    assert torch.allclose(whole, split, rtol=1e-12), (whole - split).abs().max()
    try:
        parts_of("* x.mean()")
    except torch.OutOfMemoryError as error:
        return error
    return "taken apart"

def shape():
    request = request_for("made", "fp32")
    request["slots"][0]["shape"] = [32, 32]
    try:
        made(request)
    except WorkerError as error:
        return error.message
    return "taken"

for what in (sets, stretches, batch, shape):
    try:
        print(what.__name__ + ":", what(), flush=True)
    except Exception as error:
        print(what.__name__ + ":", repr(error), flush=True)
)PY";

// The script's line for one of its checks; the script runs once for all tests.
std::string official_said(const std::string& check) {
  static const std::string all = [] {
    TaskFile file("script", std::string(kOfficialScript) + kChecks);
    const std::string root = CUTEGEN_SOURCE_DIR;
    std::string command = fmt::format("PYTHONPATH={}/python {}/.venv/bin/python -B {} 2>&1", root,
                                      root, file.path().string());
    std::string out = "\n";
    FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) return std::string("no shell");
    std::array<char, 256> part{};
    while (std::fgets(part.data(), part.size(), pipe)) out += part.data();
    ::pclose(pipe);
    return out;
  }();
  const size_t at = all.find("\n" + check + ": ");
  if (at == std::string::npos) return all;
  const size_t begin = at + check.size() + 3;
  return all.substr(begin, all.find('\n', begin) - begin);
}

TEST(OfficialWorker, ASetIsThatOfTheOtherShapesAndItsMarginThatOfTheHost) {
  EXPECT_EQ(official_said("sets"), "ok");
}

TEST(OfficialWorker, NeighboursBySizeAreSoughtInStretches) {
  EXPECT_EQ(official_said("stretches"), "ok");
}

TEST(OfficialWorker, ABatchIsTakenApartOnlyWhereRowsAreApart) {
  EXPECT_EQ(official_said("batch"), "the batch cannot be split");
}

TEST(OfficialWorker, AnotherShapeThanDescribedIsRefused) {
  EXPECT_THAT(official_said("shape"),
              testing::HasSubstr("'x' has shape [64, 32]; [32, 32] was described"));
}

TEST(OfficialWorker, AWorkerWithoutAGpuFillsNothing) {
  Task task;
  auto filled = test_worker().fill(Context(), task, ShapeCase{}, "made", 1, {}, {});
  ASSERT_FALSE(filled);
  EXPECT_THAT(filled.error().message, testing::HasSubstr("has no GPU"));
}

}  // namespace
}  // namespace cutegen::torch
