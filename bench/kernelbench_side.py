# SPDX-License-Identifier: Apache-2.0
"""Runs KernelBench's own evaluation of the same kernels, for gpu_turnaround.py.

PAIRS is a fixed list: four classes of level 1, each in plain CUDA and as the recipe's CuTe program. A pair becomes a
ModelNew file: the same device source for torch's load_inline, with the plan's launches at the official shape. A
separate process calls KernelBench's eval_kernel_against_ref for the file, with the settings of KernelBench's script (5
correctness trials, 100 timed runs), and compiles with nvcc and torch's headers. Only this call is timed, without the
start of Python, the import of torch and the first CUDA context.

Run as a program (by judge_all) it judges one file: kernelbench_side.py KERNELBENCH TASK.py MODEL.py BUILD_DIR
"""
from __future__ import annotations

import concurrent.futures
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import turnaround_programs as programs

Json = dict[str, Any]
CLASSES = {"pointwise": "88_MinGPTNewGelu", "broadcast": "12_Matmul_with_diagonal_matrices_",
           "normalisation": "40_LayerNorm", "matrix product": "1_Square_matrix_multiplication_"}
PAIRS = [{"name": f"{stem.split('_')[0]}_{dialect}", "class": kind, "task": stem, "dialect": dialect}
         for kind, stem in CLASSES.items() for dialect in ("cuda", "cute")]


def entries(pairs: list[Json], level1: Path, recipes: dict[str, Json]) -> list[Json]:
    """The pairs that gpu_turnaround.py judges. Recipes' programs have an edit, so that nothing is cached."""
    return [{"name": p["name"], "task": level1 / f"{p['task']}.py", "kind": "pair", "expect": ("correct", ""),
             "program": programs.program(*programs.plain_of_kernelbench(p["task"])) if p["dialect"] == "cuda"
             else programs.edited(recipes[p["task"]], 0)} for p in pairs]


class Numbers:
    """The expressions of a plan at the official shape, which are Python except for '/' and the conditional."""

    def __init__(self, plan: Json, shapes: dict[str, list[int]]) -> None:
        def stride(name: str, axis: int) -> int:
            out = 1
            for n in shapes[name][axis + 1:]:
                out *= n
            return out

        def size(name: str) -> int:
            out = 1
            for n in shapes[name]:
                out *= n
            return out

        self.names: Json = {name: name for name in shapes}
        self.names.update(dim=lambda n, i: shapes[n][i], stride=stride, size=size, min=min, max=max,
                          ceil_div=lambda a, b: -(-a // b))
        for name, expression in plan.get("symbols", {}).items():
            self.names[name] = self.of(expression)

    def of(self, expression: object) -> int:
        text = str(expression).replace("/", "//").replace("&&", " and ").replace("||", " or ")
        text = re.sub(r"^(.*)\?(.*):(.*)$", r"(\2) if (\1) else (\3)", text)
        return int(eval(text, {"__builtins__": {}}, self.names))  # only cutegen's own plans


def launch_lines(plan: Json, numbers: Numbers, pointers: dict[str, str]) -> Iterator[str]:
    for step in plan["steps"]:
        if not numbers.of(step.get("when", "1")):
            continue
        values = []
        for arg in step["args"]:
            (kind, value), = arg.items()
            values.append(pointers[value] if kind == "tensor"
                          else f"({'long long' if kind == 'i64' else 'int'}){numbers.of(value)}LL")
        grid, block = (", ".join(str(numbers.of(e)) for e in step[k]) for k in ("grid", "block"))
        yield f"  {step['kernel']}<<<dim3({grid}), dim3({block})>>>({', '.join(values)});"


def model_new(program: Json, task: Json) -> str:
    """The ModelNew file of a program for a described task."""
    plan = program["plan"]
    # nvcc makes no device copies of host constants (NVRTC's -default-device does).
    source = re.sub(r"^constexpr int (kTile\w) = (\d+);", r"#define \1 \2", program["sources"]["kernel.cu"],
                    flags=re.MULTILINE)
    official = next(s for s in task["shapes"] if s["kind"] == "official")
    tensors = {t["name"]: t for t in task["tensors"]}
    bound = {alias: name for alias, name in plan.get("bind", {}).items()}
    shapes = {**official["tensors"], **{alias: official["tensors"][name] for alias, name in bound.items()}}
    numbers = Numbers(plan, shapes)
    defines = "".join(f"#define {k} {numbers.of(v)}\n" for k, v in plan.get("defines", {}).items())
    inputs = [n for n, t in tensors.items() if t["role"] == "input"]
    held = [n for n, t in tensors.items() if t["role"] not in ("input", "output")]
    output = next(n for n, t in tensors.items() if t["role"] == "output")
    ctype = {t["tensor"]: None for s in plan["steps"] for t in s["args"] if "tensor" in t}
    pointers = {}
    scratch = {s["name"]: s for s in plan.get("scratch", [])}
    parameters = {n: f"t{i}" for i, n in enumerate(inputs + held)}
    for name in ctype:
        real = bound.get(name, name)
        if name in scratch:
            pointers[name] = f"reinterpret_cast<SCRATCH_{name}>(s_{name}.data_ptr())"
        elif real == output:
            pointers[name] = "out.data_ptr<float>()"
        else:
            pointers[name] = f"{parameters[real]}.data_ptr<float>()"
    for name in scratch:  # the parameter's type in the kernel's declaration
        declared = re.search(rf"([\w:]+)\s*\*\s*(?:__restrict__)?\s*{name}\b", source)
        assert declared, f"the kernel has no parameter '{name}'"
        pointers[name] = pointers[name].replace(f"SCRATCH_{name}", declared[1] + "*")
    lines = [f"  auto out = torch::empty({{{', '.join(map(str, shapes[output]))}}}, t0.options());"]
    for name, s in scratch.items():
        sizes = ", ".join(str(numbers.of(e)) for e in s["shape"])
        lines.append(f"  auto s_{name} = torch::empty({{{sizes}}}, t0.options());")
    lines += list(launch_lines(plan, numbers, pointers))
    signature = "torch::Tensor run(" + ", ".join(f"torch::Tensor {p}" for p in parameters.values()) + ")"
    host = signature + " {\n" + "\n".join(lines) + "\n  return out;\n}\n"
    call = ", ".join(inputs + [f"self.{n}" for n in held])
    return f'''import os
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <math_constants.h>
{defines}{source}
{host}"""
DECLARED = "{signature};"
module = load_inline(name="pair_{abs(hash(source)) % 10 ** 9}", cpp_sources=DECLARED, cuda_sources=SOURCE,
                     functions=["run"], extra_include_paths=os.environ["PAIR_INCLUDES"].split(":"),
                     extra_cuda_cflags=["-O3", "-std=c++17"], extra_cflags=["-O3"],
                     build_directory=os.environ["PAIR_BUILD"])


class ModelNew(Model):
    def forward(self, {', '.join(inputs)}):
        return module.run({call})
'''


class BaseModel:
    """The part of pydantic that KernelBench's result needs; pydantic is not installed everywhere."""

    def __init__(self, **fields: Any) -> None:
        for name in type(self).__annotations__:
            value = fields.get(name, getattr(type(self), name, None))
            setattr(self, name, dict(value) if isinstance(value, dict) else value)


def stand_in(name: str) -> None:
    def attribute(what: str) -> Any:
        if what.startswith("__"):
            raise AttributeError(what)
        return BaseModel if what == "BaseModel" else lambda *a, **k: None

    module = types.ModuleType(name)
    setattr(module, "__getattr__", attribute)
    sys.modules[name] = module


def import_eval(kernelbench: str) -> Any:
    """KernelBench's eval module; packages that its evaluation does not use may be missing."""
    import torch  # noqa: F401 - before any stand-in
    sys.path.insert(0, str(Path(kernelbench) / "src"))
    for name in ("pydantic", "dotenv", "openai", "litellm", "tqdm", "requests", "datasets"):
        try:
            __import__(name)
        except ImportError:
            stand_in(name)
    return importlib.import_module("kernelbench.eval")


def errors_of(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower()]
    return "\n".join(lines or [text])[:600]


def judge_one(kernelbench: str, task: str, model: str, build: str) -> None:
    """Prints KernelBench's result and the time of its one call."""
    os.environ.update(TORCH_CUDA_ARCH_LIST="9.0", PAIR_BUILD=build)
    Path(build).mkdir(parents=True)
    judge = import_eval(kernelbench)
    import torch
    torch.zeros(1, device="cuda")
    began = time.monotonic()
    result = judge.eval_kernel_against_ref(Path(task).read_text(), Path(model).read_text(), verbose=False,
                                           measure_performance=True, timing_method="cuda_event", num_correct_trials=5,
                                           num_perf_trials=100, backend="cuda", precision=torch.float32,
                                           build_dir=build + ".torch")
    seconds = time.monotonic() - began
    print(json.dumps({"seconds": seconds, "compiled": result.compiled, "correct": result.correctness,
                      "time_us": 1e3 * result.runtime, "reference_us": 1e3 * result.ref_runtime,
                      "trouble": {k: errors_of(str(v)) for k, v in result.metadata.items()
                                  if "error" in k or "issue" in k}}))


def judge_all(pairs: list[Json], tasks: dict[str, Json], kernelbench: Path, sources: Path, jobs: int) -> list[Json]:
    """KernelBench's results, several in parallel. If there are many pairs, judges the first one alone before."""
    includes = [p for p in ("cutlass", "include", "headers/cutlass") if (sources / p / "cute").is_dir() or
                (sources / p / "cutegen").is_dir()]
    environment = {**os.environ, "PAIR_INCLUDES": ":".join(str((sources / p).absolute()) for p in includes)}
    with tempfile.TemporaryDirectory() as work:
        def judge(job: tuple[int, Json, bool]) -> Json:
            number, entry, alone = job
            model = Path(work) / f"{number}.py"
            model.write_text(model_new(entry["program"], tasks[entry["name"]]))
            run = subprocess.run([sys.executable, __file__, str(kernelbench), str(entry["task"]), str(model),
                                  str(Path(work) / f"build{number}")], capture_output=True, text=True, timeout=400,
                                 check=False, env=environment)
            last = (run.stdout.strip().splitlines() or [""])[-1]
            out = (json.loads(last) if last.startswith("{")
                   else {"trouble": {"process": (run.stderr or run.stdout)[-1500:]}})
            return {"name": entry["name"], "kind": "kernelbench", "alone": alone, **out}

        first = [judge((0, pairs[0], True))] if len(pairs) > 2 else []
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            others = list(pool.map(judge, [(i + 1, e, False) for i, e in enumerate(pairs)]))
    return first + others


def summary(ours: list[Json], theirs: list[Json]) -> None:
    seconds = {x["name"]: x["seconds"] for x in theirs if not x["alone"] and x.get("seconds")}
    ratios = []
    for mine in ours:
        other = next(x for x in theirs if x["name"] == mine["name"] and not x["alone"])
        if not other.get("correct") or not mine["as_expected"]:
            print(f"{mine['name']}: ours {mine['status']}, theirs {other}")
            continue
        ratio = 1e3 * seconds[mine["name"]] / mine["wall_ms"]
        ratios.append(ratio)
        print(f"{mine['name']:12} ours {mine['wall_ms']:8.1f} ms  theirs {seconds[mine['name']]:7.1f} s  "
              f"{ratio:7.1f}x  "
              f"kernel: ours {mine['time_us']:.1f} us, theirs {other['time_us']:.1f} us")
    if ratios:
        ratios.sort()
        print(f"ratio: median {statistics.median(ratios):.1f}, least {ratios[0]:.1f}")
    for alone in (x for x in theirs if x["alone"] and x.get("seconds") and x["name"] in seconds):
        print(f"{alone['name']} alone: {alone['seconds']:.1f} s, among others {seconds[alone['name']]:.1f} s")


if __name__ == "__main__":
    judge_one(*sys.argv[1:])
