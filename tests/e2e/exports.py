# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 cost=80
"""cutegen export: the exported files work without cutegen, and cutegen refuses what it cannot export."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path

import harness
from harness import Json

PYTHON = os.environ.get("CUTEGEN_PYTHON", str(harness.ROOT / ".venv/bin/python"))
FAKE = harness.BIN.parent / "tests/libfake_cuda.so"
NORM, TOLD = harness.ROOT / "tests/honest/norm", harness.ROOT / "tests/exports/told"

# Runs the operator and the module on a CPU, with the reference in place of the kernels.
IN_PYTHON = '''
import torch
from load import Model, exported, reference
exported.current.anywhere = exported.anywhere = True
model = Model(*reference.get_init_inputs())
torch.manual_seed(1)
x = reference.get_inputs()[0]
tensors = exported.accept(model, model._kernels, (x,), {})
assert tensors is not None
tensors = [t.detach() for t in tensors[1]]
torch.library.opcheck(exported.op, tensors)
torch.library.opcheck(exported.op, [t.clone().requires_grad_() for t in tensors])
plain = reference.Model(*reference.get_init_inputs())
plain.load_state_dict(model.state_dict())
assert torch.equal(model(x), plain(x))
assert torch.equal(model(x=x), plain(x))
for other in (x[:7], x.t().contiguous().t(), x.double()[:0].float()):
    assert torch.equal(model(other), plain(other))
model(x).square().sum().backward()
plain(x).square().sum().backward()
for a, b in zip(model.parameters(), plain.parameters()):
    assert torch.allclose(a.grad, b.grad), (a.grad - b.grad).abs().max()
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
assert torch.equal(compiled(x), plain(x))
model.norm.eps = 0.5
assert exported.adopt(model, (520,), {}) == 0, "another attribute must not be served"
for args, kwargs in (((520,), {}), ((), {"features": 520})):
    assert Model(*args, **kwargs)._kernels > 0
assert Model(77)._kernels == 0, "another argument must not be served"
print("fine")
'''

# The kernel `tell` writes the driver's launch arguments to its first buffer.
ON_A_DRIVER = '''
import json, sys
from pathlib import Path
import torch
import load
runtime = sys.modules[type(load.exported).__module__]
here = Path(load.__file__).parent
images = [[(here / "images" / name).read_bytes() for name in names] for names in load.data["modules"]]
program = runtime.Program(runtime.Driver(sys.argv[1]), load.data, images, 0)
x, out = torch.ones(32, 32, dtype=torch.float64), torch.zeros(32, 32, dtype=torch.float64)
cleared = torch.ones(4, dtype=torch.int32)
# A tensor at an odd address is copied before the kernels see it.
given = []
load.exported.programs[-1] = type("Told", (), {"run": lambda self, case, pointers, stream: given.append(pointers)})()
torch.cuda.current_device, runtime._stream_of = lambda: -1, lambda device: 0
memory = torch.zeros(3 * 1024 + 64, dtype=torch.float64)
start = (-memory.data_ptr() // 8) % 32
even, odd = memory[start : start + 1024].view(32, 32), memory[start + 1025 : start + 2049].view(32, 32)
runtime._ALIGNED = 64  # of memory on a CPU
for t in (even, odd):
    made = load.exported.launch(0, [t])
    assert made[0].shape == (32, 32) and len(given[-1]) == 3, given
assert given[0][0] == even.data_ptr() and given[1][0] != odd.data_ptr() and given[1][0] % 64 == 0, given
for _ in range(2):
    program.run(0, [x.data_ptr(), out.data_ptr(), cleared.data_ptr()], 0)
print(json.dumps({"told": out.flatten()[:20].tolist(), "cleared": cleared.tolist()}))
'''


# The same for the C++ function, through the module that test and bench use.
IN_A_LIBRARY = '''
import json
import torch
import load
x, out = torch.ones(32, 32, dtype=torch.float64), torch.zeros(32, 32, dtype=torch.float64)
cleared = torch.ones(4, dtype=torch.int32)
load.Library().run(0, [x.data_ptr(), out.data_ptr(), cleared.data_ptr()], 0)
print(json.dumps({"told": out.flatten()[:20].tolist(), "cleared": cleared.tolist()}))
'''

# A module whose result depends on its mode and on a scalar of the call.
SHIFTING = '''
import torch
from torch import nn

rows = 16


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x, alpha=2.0):
        return self.norm(x) * alpha


def get_inputs():
    return [torch.randn(rows, 24), 0.5]


def get_init_inputs():
    return [24]
'''
SHAPES = '[[shapes]]\nname = "half"\nconstants = {rows = 8}\n[[shapes]]\nname = "odd"\nconstants = {rows = 5}\n'
LEFT_ALONE = '''
import torch
from load import Model, data, exported, reference
exported.anywhere = True
model = Model(24).eval()
x = reference.get_inputs()[0]


def served(*args, **kwargs):
    return exported.accept(model, model._kernels, args, kwargs) is not None


assert [s["name"] for s in data["shapes"]] == ["official", "half"], data["shapes"]
assert served(x, 0.5) and served(x, alpha=0.5) and served(x=x, alpha=0.5) and served(x[:8], 0.5)
assert not served(x, 0.7) and not served(x) and not served(x[:5], 0.5) and not served(x, torch.tensor(0.5))
assert not served(x.double(), 0.5) and not served(torch.cat([x, x], 1)[:, ::2], 0.5)
with torch.autocast("cuda") if torch.cuda.is_available() else torch.no_grad():
    assert served(x, 0.5) != torch.cuda.is_available()
with torch.no_grad():
    plain = reference.Model(24).eval()
    assert torch.equal(model(x, 0.5), plain(x, 0.5)) and torch.equal(model(x[:8], alpha=0.5), plain(x[:8], 0.5))
    made = torch.func.functional_call(model, {"norm.weight": torch.full((24,), 3.0)}, (x, 0.5))
    assert torch.allclose(made, 3 * plain(x, 0.5))
model.train()
assert not served(x, 0.5), "in training its result is another"
model(x, 0.5)
assert model.norm.num_batches_tracked == 1, "the reference keeps its statistics"
print("fine")
'''


# A step of decoding: the operator writes the caches, as forward() does.
CACHES = '''
import copy, sys
import torch
from load import Model, data, exported, reference
runtime = sys.modules[type(exported).__module__]
exported.current.anywhere = exported.anywhere = True
assert data["mutated"] == ["k_cache", "v_cache"] and exported.written == data["mutated"], data
model, plain = Model(), reference.Model()


def both(call, inputs):
    """What a call gives and leaves in its inputs, beside the reference."""
    own, other = copy.deepcopy(inputs), copy.deepcopy(inputs)
    got, wanted = call(*own), plain(*other)
    assert torch.allclose(got, wanted, atol=1e-6), (got - wanted).abs().max()
    for a, b, c in zip(own, other, inputs):
        assert torch.equal(a, b)
    assert not torch.equal(own[4], inputs[4]), "the cache was not written"
    return own


torch.manual_seed(3)
inputs = reference.get_inputs()
assert exported.accept(model, model._kernels, tuple(inputs), {}) is not None
with torch.no_grad():
    version = both(model, inputs)[4]._version
    assert version > 0, "autograd is not told"
    both(torch.compile(model, fullgraph=True, backend="aot_eager"), inputs)
torch.library.opcheck(exported.op, [t.clone() for t in inputs], test_utils=("test_schema", "test_faketensor"))
wants_gradient = [inputs[0].clone().requires_grad_(), *inputs[1:]]
assert exported.accept(model, model._kernels, tuple(wants_gradient), {}) is None, "the reference gives gradients"

# A tensor gets the results, also if the kernels worked on a copy of it.
given = []


def run(self, case, pointers, stream):
    import ctypes
    ctypes.cast(pointers[4], ctypes.POINTER(ctypes.c_float))[0] = 42.0
    given.append(list(pointers))


exported.programs[-1] = type("Told", (), {"run": run})()
torch.cuda.current_device, runtime._stream_of = lambda: -1, lambda device: 0
runtime._ALIGNED = 64  # of memory on a CPU
memory = torch.zeros(inputs[4].numel() + 64)
start = (-memory.data_ptr() // 4) % 16
for odd in (0, 1):
    part = memory[start + odd : start + odd + inputs[4].numel()].view(inputs[4].shape)
    part.zero_()
    tensors = [*(t.clone() for t in inputs[:4]), part, inputs[5].clone()]
    exported.launch(0, tensors)
    assert part.flatten()[0] == 42.0, "what the kernels wrote is lost"
    assert (given[-1][4] == part.data_ptr()) == (odd == 0), given
print("fine")
'''
# forward() returns its mutated input, so the operator returns nothing.
IN_PLACE = '''
import torch
from load import Model, exported, reference
exported.current.anywhere = exported.anywhere = True
model = Model()
x = reference.get_inputs()[0]
before = x.clone()
assert exported.outputs == [] and exported.returns == ["x"]
with torch.no_grad():
    assert model(x) is x and torch.equal(x, before.relu())
    x = before.clone()
    assert exported.op(x) is None and torch.equal(x, before.relu())
print("fine")
'''
# The module keeps the running statistics, and the next call continues from them.
STATISTICS = '''
import copy
import torch
from load import Model, exported, reference
exported.current.anywhere = exported.anywhere = True
model = Model(*reference.get_init_inputs()).train()
plain = reference.Model(*reference.get_init_inputs()).train()
plain.load_state_dict(model.state_dict())
with torch.no_grad():
    for _ in range(3):
        x = reference.get_inputs()[0]
        assert exported.accept(model, model._kernels, (x,), {}) is not None
        assert torch.allclose(model(x), plain(x))
for (name, a), b in zip(model.state_dict().items(), plain.state_dict().values()):
    assert torch.allclose(a, b), name
assert model.norm.num_batches_tracked == 3
assert exported.accept(model, model._kernels, (x,), {}) is None, "parameters want gradients"
print("fine")
'''
# Runs the exported test as a program, then a script, in one process, to import torch only once.
TEST_FIRST = '''
import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
'''
ATTACKS = harness.ROOT / "tests/attacks"


class Exports(harness.Case):
    def test_what_forward_mutates(self) -> None:
        """A commit chooses one of the three programs."""
        for program, (task, script) in harness.in_turn({"cache_kept": ("cache", CACHES),
                                                        "in_place_kept": ("relu_in_place", IN_PLACE),
                                                        "statistics_kept": ("train_norm", STATISTICS)}, 3).items():
            result = self.cutegen("export", ATTACKS / program, "--task", ATTACKS / "tasks" / f"{task}.py", "--to",
                                  "torch,kernelbench", "--out", "both")
            self.assert_code(result, 0)
            for kind in ("torch", "kernelbench"):
                with self.subTest(f"{program} to {kind}"):
                    self.check_export(f"both/{task}_{kind}", f"test_{task}.py", script)

    @unittest.skipUnless(shutil.which("g++"), "no g++ here")
    def test_what_forward_mutates_in_cpp(self) -> None:
        self.assert_code(self.export(ATTACKS / "cache_kept", "cpp", task=ATTACKS / "tasks/cache.py"), 0)
        header = (self.folder / "as_cpp/cache.h").read_text()
        self.assertIn("  float* k_cache; /* mutated input", header)
        self.assertIn("  const float* q; /* input", header)
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", "main", "main.cpp", "cache.cpp",
                        "-ldl"],
                       cwd=self.folder / "as_cpp", check=True)
        self.assertIn("ok", self.python("as_cpp", "test_cache.py"))

    def export(self, folder: Path, kind: str, *more: object, task: Path | None = None) -> harness.Result:
        return self.cutegen("export", folder, "--task", task or folder / "task.py", "--to", kind, *more,
                            "--out", "as_" + kind)

    def check_export(self, folder: str, test: str, script: str) -> str:
        """Runs an export's own test, then the script."""
        told = self.python(folder, "-c", TEST_FIRST + script, test)
        self.assertRegex(told, r"(?s)\bok\b.*\bfine\b")
        return told

    def python(self, folder: str, *arguments: object, env: dict[str, str] | None = None) -> str:
        done = subprocess.run([PYTHON, *map(str, arguments)], cwd=self.folder / folder, capture_output=True, text=True,
                              timeout=200, check=False,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        self.assertEqual(done.returncode, 0, done.stdout[-1500:] + done.stderr[-3000:])
        return done.stdout

    def test_torch(self) -> None:
        result = self.export(NORM, "torch", "--json")
        self.assert_code(result, 0)
        self.assertEqual(result.json()["schema"], "cutegen.export.v1")
        self.assertIn("__init__.py", result.json()["exports"][0]["files"])
        apart = "import bench; print([bench.apart(m, w, 15, t) for m, w, t in (('cold', 'exported', 10), " \
                "('call', 'eager', 20), ('call', 'exported', 10), ('cold', 'eager', None))])"
        self.assertIn("[0.5, -0.25, None, None]", self.check_export("as_torch", "test_task.py", IN_PYTHON + apart))
        imported = "import sys; from as_torch import Model, op; print(op, [n for n in sys.modules if 'cutegen' in n])"
        self.assertRegex(self.python(".", "-c", imported), r"exported_task_\w+.run.* \[\]")
        for name in ("README.md", "runtime.py", "launches.json"):
            self.assertNotIn(str(harness.ROOT), (self.folder / "as_torch" / name).read_text())

    def test_kernelbench(self) -> None:
        self.assert_code(self.export(NORM, "kernelbench"), 0)
        self.check_export("as_kernelbench", "test_task.py", IN_PYTHON)
        # Loads one file alone, as KernelBench does: into a dictionary, beside the reference.
        text = (self.folder / "as_kernelbench/model_new.py").read_text()
        (self.folder / "alone").mkdir()
        (self.folder / "alone/run.py").write_text('''
import torch
context = {}
exec(open("../as_kernelbench/reference.py").read(), context)
Model, get_inputs, get_init_inputs = (context[n] for n in ("Model", "get_inputs", "get_init_inputs"))
exec("import os\\n" + open("model_new.py").read(), context)
torch.manual_seed(42); a = Model(*get_init_inputs())
torch.manual_seed(42); b = context["ModelNew"](*get_init_inputs())
x = get_inputs()[0]
assert torch.equal(a(x), b(x)) and list(a.state_dict()) == list(b.state_dict())
print("same")
''')
        (self.folder / "alone/model_new.py").write_text(text)
        self.assertIn("same", self.python("alone", "run.py"))

    def test_several_kinds_at_once(self) -> None:
        arguments = ("export", NORM, "--task", NORM / "task.py", "--to", "torch,cpp", "--out", "both")
        result = self.cutegen(*arguments, "--json")
        self.assert_code(result, 0)
        self.assertEqual([e["folder"] for e in result.json()["exports"]], ["both/task_torch", "both/task_cpp"])
        self.assertTrue((self.folder / "both/task_cpp/task.h").exists())
        self.assert_error(self.cutegen(*arguments), 2, "both/task_torch' already exists", "--force")
        self.assert_error(self.cutegen(*arguments, "--to", "jax"), 2, "jax")

    def test_what_is_left_to_the_reference(self) -> None:
        shutil.copytree(NORM, self.folder / "p")
        self.write("p/task.py", SHIFTING)
        self.write("p/task.toml", SHAPES)
        plan = json.loads((self.folder / "p/plan.json").read_text())
        plan.update(bind={"w": "norm.weight", "b": "norm.bias"}, requires=["rows % 8 == 0"])
        self.write("p/plan.json", json.dumps(plan))
        result = self.export(self.folder / "p", "torch", "--json")
        self.assert_code(result, 0)
        self.assertEqual(result.json()["shapes"], ["official", "half"])
        self.assertRegex(result.json()["left_out"][0], "'odd' does not meet 'rows % 8 == 0'")
        self.assertIn("fine", self.python("as_torch", "-c", LEFT_ALONE))

    @unittest.skipUnless(shutil.which("g++"), "no g++ here")
    def test_cpp(self) -> None:
        for folder in (NORM, TOLD):
            self.assert_code(self.export(folder, "cpp", "--force"), 0)
            subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", "main", "main.cpp", "task.cpp",
                            "-ldl"], cwd=self.folder / "as_cpp", check=True)
            with_gpu = {"LD_LIBRARY_PATH": str(self.driver())}
            ran = subprocess.run(["./main"], cwd=self.folder / "as_cpp", capture_output=True, text=True, timeout=60,
                                 check=False, env={**os.environ, **with_gpu})
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertIn("us a call", ran.stdout)
        self.assertIn("ok", self.python("as_cpp", "test_task.py"))
        self.assert_told(json.loads(self.python("as_cpp", "-c", IN_A_LIBRARY, env=with_gpu)))

    def driver(self) -> Path:
        """A folder with a libcuda.so.1 that has no GPU."""
        folder = self.folder / "driver"
        folder.mkdir(exist_ok=True)
        if not (folder / "libcuda.so.1").exists():
            (folder / "libcuda.so.1").symlink_to(FAKE)
        return folder

    @unittest.skipUnless(FAKE.exists(), "the driver without a GPU is not built")
    def test_what_the_driver_is_given(self) -> None:
        self.assert_code(self.export(TOLD, "torch"), 0)
        got = json.loads(self.python("as_torch", "-c", ON_A_DRIVER, self.driver() / "libcuda.so.1"))
        self.assert_told(got)

    def assert_told(self, got: Json) -> None:
        cluster, overlap = [4, 2], [6, 1]  # each attribute's number and first value
        self.assertEqual(got["told"], [4, 3, 2, 64, 2, 1, 49152, *cluster, *overlap, 32, 0.5, 0.25, 1, 2, 2, 2, 2, 2])
        self.assertEqual(got["cleared"], [0, 0, 0, 0])

    def test_a_run_of_the_store(self) -> None:
        runs = ("--runs", self.folder / "runs")
        made = self.cutegen("optimize", harness.ROOT / "tasks/relu.py", "--evaluations", 1, *runs, timeout=240)
        self.assert_code(made, 0)
        result = self.cutegen("export", "last", "--to", "torch", *runs, "--json")
        self.assert_code(result, 0)
        self.assertEqual(result.json()["exports"][0]["folder"], "relu_torch")
        self.assertTrue(result.json()["judged"])
        self.assertIn("Verdict: correct", (self.folder / "relu_torch/README.md").read_text())
        again = self.cutegen("export", "last", "--to", "torch", *runs)
        self.assert_error(again, 2, "relu_torch' already exists", "--force")
        self.assert_code(self.cutegen("export", "last", "--to", "torch", "--force", *runs), 0)
        self.assert_error(self.cutegen("export", "20990101", "--to", "torch", *runs), 2, "20990101")
        self.assert_error(self.cutegen("export", "last", "--to", "torch", "--task", "x.py", *runs), 2,
                          "the folder does not exist|task")


class Refusals(harness.Case):
    def export(self, *arguments: object) -> harness.Result:
        return self.cutegen("export", *arguments)

    def folder_of(self, task: str | None = None, **plan: object) -> tuple[str, ...]:
        shutil.copytree(NORM, self.folder / "p")
        if task:
            (self.folder / "p/task.py").write_text(task)
        if plan:
            text = json.loads((self.folder / "p/plan.json").read_text())
            (self.folder / "p/plan.json").write_text(json.dumps({**text, **plan}))
        return "p", "--task", "p/task.py", "--out", "out", "--to", "torch"

    def test_kinds_and_folders(self) -> None:
        self.assert_error(self.export("last", "--to", "jax"), 2, "jax", "torch, kernelbench, cpp")
        self.assert_error(self.export("./none", "--to", "torch"), 2, "the folder does not exist")
        self.assert_error(self.export(NORM, "--to", "torch"), 2, "--task")
        self.assert_error(self.export(*self.folder_of()[:4], "no/such/out", "--to", "cpp"), 2,
                          "the folder does not exist:", "no/such")
        (self.folder / "mine").mkdir()
        (self.folder / "mine/notes.txt").write_text("x")
        refused = self.export("p", "--task", "p/task.py", "--to", "torch", "--out", "mine", "--force")
        self.assert_error(refused, 2, "contains no export")
        self.assertEqual((self.folder / "mine/notes.txt").read_text(), "x")

    def test_an_empty_store(self) -> None:
        self.assert_error(self.export("last", "--to", "torch", "--runs", self.folder / "runs"), 2, "no run")

    def test_a_run_that_found_nothing(self) -> None:
        runs = ("--runs", self.folder / "runs")
        task = self.write("t.py", harness.ADD.replace("torch.relu(x) + 1.0", "torch.digamma(x)"))
        self.assert_code(self.cutegen("optimize", task, "--evaluations", 1, *runs, timeout=200), 3)
        self.assert_error(self.export("last", "--to", "torch", *runs), 2, "no correct program", "cutegen show")

    def test_a_program_that_failed(self) -> None:
        arguments = self.folder_of()
        (self.folder / "p/verdict.json").write_text('{"status": "nonsense"}')
        self.assert_code(self.export(*arguments), 2)
        verdict = json.loads((harness.ROOT / "tests/golden/core/verdict.json").read_text())
        verdict["status"] = "failed"
        (self.folder / "p/verdict.json").write_text(json.dumps(verdict))
        self.assert_error(self.export(*arguments), 2, "judged 'failed'")

    def test_a_gpu_that_is_not_here(self) -> None:
        self.assert_error(self.export(*self.folder_of(), "--device", "cuda:0"), 6, "gpu|driver")
        self.assert_error(self.export("p", "--task", "p/task.py", "--to", "cpp", "--device", "sim:x1"), 2, "h200")

    def test_a_plan_for_another_gpu(self) -> None:
        self.assert_error(self.export(*self.folder_of(arch=["sm_80"])), 5, "sm_80")

    def test_reserved_fields_of_a_plan(self) -> None:
        self.assert_code(self.export(*self.folder_of(states=[])), 2)

    def test_a_task_of_several_files(self) -> None:
        text = (NORM / "task.py").read_text().replace("import torch\n", "import torch\nimport helpers\n", 1)
        arguments = self.folder_of(task=text)
        (self.folder / "p/helpers.py").write_text("x = 1\n")
        refused = self.export(*arguments)  # 2: a full sandbox does not even show the other file
        self.assertIn(refused.code, (2, 5), str(refused))
        self.assertIn("imports 'helpers'", refused.err)

    def test_a_plan_that_forgets_what_forward_mutates(self) -> None:
        text = (NORM / "task.py").read_text().replace("return self.norm(x)",
                                                      "self.count += 1\n        return self.norm(x)")
        text = text.replace("super().__init__()\n",
                            "super().__init__()\n        self.register_buffer('count', torch.zeros(1))\n")
        self.assert_error(self.export(*self.folder_of(task=text)), 2, "no step gets the mutated tensor 'count'")

    def test_a_certificate_of_another_program(self) -> None:
        arguments = self.folder_of()
        (self.folder / "c.json").write_text("{}")
        self.assert_code(self.export(*arguments, "--certificate", "c.json"), 2)
        self.assert_error(self.export(*arguments, "--certificate", "none.json"), 2, "certificate file does not exist")


if __name__ == "__main__":
    harness.main()
