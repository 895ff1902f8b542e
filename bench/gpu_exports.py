#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports programs on a GPU and tests everything that docs/export.md promises.

Usage: gpu_exports.py CUTEGEN TREE OUT.jsonl [--kernelbench DIR] [--only NAME,...] [--limit-s N]

The programs come from tests/honest (every class, with larger sizes), from tests/exports (tensor maps, two results,
cleared scratch, clusters and the rest) and from recipes for tasks/. A NAME that is a task file gets its recipe. Each
program is exported in three ways and judged by `cutegen eval`. Then one process with the GPU tests opcheck,
torch.compile, a CUDA graph, two streams, other shapes, gradients and the test of each export, and compares the exported
operator's time with the evaluator's. Programs named by --certify are also certified and timed by their own bench.py.
With --kernelbench (a checkout), KernelBench's own evaluator judges the ModelNew files. Writes one line of JSON per
program and prints a summary.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the process without the GPU does not import torch
    from torch import Tensor

Json = dict[str, Any]
SIZES = {
    "attention": {"heads": 16, "length": 256, "depth": 64},
    "conv": {"batch": 16, "inputs": 16, "outputs": 32, "height": 128, "width": 128},
    "depthwise": {"batch": 16, "channels": 64, "height": 256, "width": 256},
    "elementwise": {"rows": 4096, "columns": 4096},
    "fused": {"batch": 512, "inputs": 1024, "outputs": 1024}, "gemv": {"m": 8192, "k": 4096},
    "loss": {"rows": 1024, "columns": 4096}, "matmul": {"m": 1024, "k": 1024, "n": 1024},
    "norm": {"rows": 8192, "features": 2048}, "pooling": {"batch": 16, "channels": 64, "height": 256, "width": 256},
    "recurrent": {"batch": 2048, "features": 1024}, "reduction": {"batch": 64, "rows": 1024, "columns": 512},
    "scan": {"rows": 8192, "columns": 2048}, "softmax": {"rows": 8192, "columns": 4096},
    "transposed_conv": {"batch": 8, "inputs": 16, "outputs": 16, "height": 96, "width": 96},
    "tensor_map": {"rows": 8192, "columns": 4096}, "every_field": {"rows": 16384, "columns": 4096},
}
RECIPES = ("linear_gelu", "rmsnorm", "mean_scale")  # of tasks/: CuTe, as the builtin proposer writes them
CERTIFIED = ("softmax", "tensor_map", "matmul")
NOT_KERNELBENCH = ("every_field",)  # KernelBench's evaluator takes neither inputs in a list nor two results
KINDS = ("torch", "kernelbench", "cpp")
ENOUGH_US = 20  # below this, the host's time is visible
LIMIT = 0.03


def scaled(text: str, sizes: dict[str, int]) -> str:
    for name, value in sizes.items():
        text, done = re.subn(rf"(?m)^{name} = \d+$", f"{name} = {value}", text)
        assert done == 1, name
    return text


class Program:
    def __init__(self, name: str, tree: Path, work: Path, made_before: Path | None = None) -> None:
        given = Path(name) if name.endswith(".py") else None
        name = "file_" + re.sub(r"\W", "_", given.stem.lower())[:30] if given else name
        self.name, self.work = name, work
        self.line: Json = {"name": name}
        self.task, self.folder = work / f"{name}.py", work / f"{name}_program"
        if self.is_recipe():
            self.folder = made_before / name if made_before and (made_before / name).exists() else self.folder
            self.task.write_text((given or tree / "tasks" / f"{name[7:]}.py").read_text())
            return
        kind = "exports" if name in ("tensor_map", "every_field") else "honest"
        self.folder = tree / "tests" / kind / name
        self.task.write_text(scaled((self.folder / "task.py").read_text(), SIZES[name]))

    def is_recipe(self) -> bool:
        return self.name.startswith(("recipe_", "file_"))

    def make(self, options: argparse.Namespace) -> None:
        """The builtin program, with the safe choice of its parameters."""
        if self.is_recipe() and not self.folder.exists():
            made = self.run(options, "optimize", self.task, "--model", "builtin", "--evaluations", 1, "--quiet",
                            "--out", self.folder, "--runs", self.work / f"{self.name}_runs")
            if made.returncode:
                self.line.setdefault("trouble", []).append(f"optimize: {made.stderr.strip()[-300:]}")

    def run(self, options: argparse.Namespace, *arguments: object) -> subprocess.CompletedProcess[str]:
        timeout = max(1.0, options.end - time.monotonic())
        return subprocess.run([options.cutegen, *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout, check=False)

    def export(self, options: argparse.Namespace) -> None:
        began = time.monotonic()
        made = self.run(options, "export", self.folder, "--task", self.task, "--to", ",".join(KINDS), "--out",
                        self.work / f"{self.name}_exports", "--device", options.device, "--json", "--force")
        self.line["export_s"] = time.monotonic() - began
        if made.returncode:
            self.line.setdefault("trouble", []).append(f"export: {(made.stderr or made.stdout).strip()[-300:]}")

    def folder_of(self, kind: str) -> Path:
        return self.work / f"{self.name}_exports" / f"{self.name}_{kind}"

    def judge(self, options: argparse.Namespace) -> None:
        began = time.monotonic()
        result = self.run(options, "eval", self.task, self.folder, "--device", options.device, "--json")
        self.line["judge_s"] = time.monotonic() - began
        if '"verdicts"' not in result.stdout:
            self.line.setdefault("trouble", []).append(f"eval: {(result.stderr or result.stdout)[-400:]}")
            return
        verdict = json.loads(result.stdout)["verdicts"][0]["verdict"]
        self.line.update(status=verdict["status"], headline=verdict["feedback"]["headline"],
                         eval_us=(verdict.get("timing") or {}).get("time_ns", 0) / 1e3)

    def apart(self) -> float:
        """The operator's time / the evaluator's time - 1."""
        mine, theirs = self.line.get("torch", {}).get("time_us", 0), self.line.get("eval_us", 0)
        return mine / theirs - 1 if mine and theirs else float("nan")

    def certify(self, options: argparse.Namespace) -> None:
        result = self.run(options, "certify", self.task, self.folder, "--device", options.device, "--json",
                          "--baseline", "eager", "--processes", 1)
        if result.returncode:
            self.line.setdefault("trouble", []).append(f"certify: {(result.stderr or result.stdout)[-400:]}")
        else:
            (self.folder_of("torch") / "certificate.json").write_text(result.stdout)


# --- in the process with the GPU


def load(folder: Path, name: str) -> Any:
    """A module of an export, under a name of its own."""
    for known in ("load", "bench", "reference", "model_new") if name == "load" else ():
        sys.modules.pop(known, None)  # of another export
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


class Checks:
    def __init__(self, folder: Path, device: str) -> None:
        import torch
        self.torch, self.folder, self.device = torch, folder, torch.device(device)
        self.load = load(folder, "load")
        self.bench = load(folder, "bench")
        get_init_inputs: Callable[[], list[Any]] = getattr(self.load.reference, "get_init_inputs", list)
        with self.device:
            torch.manual_seed(3)
            self.model = self.load.Model(*get_init_inputs())
            self.inputs = self.load.reference.get_inputs()
        self.model.to(self.device).train(self.load.data["train_mode"])
        self.exported = self.load.exported
        self.exported.anywhere = self.exported.current.anywhere = self.device.type == "cpu"

    def names(self) -> list[str]:
        wanted = ["graph", "streams"] if self.device.type == "cuda" else []
        return ["opcheck", "compile", "shapes", "gradients", *wanted] if self.folder.name.endswith("_torch") else wanted

    def tensors(self) -> list[Tensor]:
        found = self.exported.accept(self.model, self.model._kernels, self.inputs, {})
        assert found is not None, "the kernels do not take the task's own inputs"
        assert self.device.type == "cpu" or self.exported.current.ready(*found), "the kernels are not used"
        return [t.detach() for t in found[1]]

    def results(self, call: Callable[..., Any] | None = None, inputs: Sequence[Any] | None = None) -> list[Tensor]:
        with self.torch.no_grad():
            out = (call or self.model)(*(inputs or self.inputs))
        return list(out) if isinstance(out, (tuple, list)) else [out]

    def near(self, got: list[Tensor], wanted: list[Tensor]) -> None:
        for g, w in zip(got, wanted, strict=True):
            far = (g.double() - w.double()).abs().max().item() / max(w.double().abs().max().item(), 1e-30)
            assert far < 1e-4, f"{far:.2e} away"

    def opcheck(self) -> None:
        self.torch.library.opcheck(self.exported.op, tuple(self.tensors()))

    def compile(self) -> None:
        self.torch._dynamo.reset()
        compiled = self.torch.compile(lambda *a: tuple(t * 2 for t in self.results_of(a)), fullgraph=True)
        self.near(self.results(compiled), [t * 2 for t in self.results()])

    def results_of(self, inputs: Sequence[Any]) -> tuple[Tensor, ...]:
        out = self.model(*inputs)
        return out if isinstance(out, tuple) else (out,)

    def graph(self) -> None:
        torch = self.torch
        wanted = self.results()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.results()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = self.results()
        for t in kept:
            t.fill_(7)
        graph.replay()
        torch.cuda.synchronize()
        self.near(kept, wanted)

    def streams(self) -> None:
        """Many calls from two threads on two streams at once, with two sets of inputs."""
        torch = self.torch
        other = self.bench.moved(self.inputs, self.device)
        other = [t * 0.5 if isinstance(t, torch.Tensor) else [u * 0.5 for u in t] for t in other]
        sets = [self.inputs, other]
        wanted = [self.results(inputs=i) for i in sets]
        torch.cuda.synchronize()

        def many(number: int) -> list[list[Tensor]]:
            torch.cuda.set_device(self.device)
            with torch.cuda.stream(torch.cuda.Stream()):
                made = [self.results(inputs=sets[number]) for _ in range(20)]
                torch.cuda.current_stream().synchronize()
            return made

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for number, made in enumerate(pool.map(many, (0, 1))):
                for got in made:
                    self.near(got, wanted[number])

    def shapes(self) -> None:
        """Half the batch, other strides, an odd address: the reference must compute these."""
        torch, first = self.torch, self.tensors()
        odd = torch.empty(first[0].numel() + 1, dtype=first[0].dtype, device=self.device)[1:].view(first[0].shape)
        odd.copy_(first[0])
        self.near(self.listed(self.exported.op(odd, *first[1:])), self.listed(self.exported.op(*first)))
        if first[0].dim() == 2 and len(first) == 1:
            inputs = [first[0].t().contiguous().t()]
            self.near(self.results(inputs=inputs), self.results(inputs=[first[0]]))
            assert self.results(inputs=[first[0][:5]])[0].shape[0] in (5, 1, first[0].shape[1])

    @staticmethod
    def listed(out: Any) -> list[Tensor]:
        return list(out) if isinstance(out, (tuple, list)) else [out]

    def gradients(self) -> None:
        torch = self.torch
        inputs = [t.clone().requires_grad_() if isinstance(t, torch.Tensor) and t.is_floating_point() else t
                  for t in self.inputs]
        out = self.model(*inputs)
        loss = torch.stack([t.double().square().mean() for t in self.listed(out)]).sum()
        loss.backward()
        assert all(t.grad is not None and t.grad.isfinite().all() for t in inputs if isinstance(t, torch.Tensor))

    def time(self, rounds: int = 25) -> dict[str, float]:
        torch = self.torch
        clock = self.bench.Clock(self.device)
        self.model.requires_grad_(False)
        way = self.bench.Way("exported", self.model, self.inputs)
        with torch.no_grad():
            for _ in range(3):
                way.run()
            for _ in range(rounds):
                clock.take(way, "cold")
            host = []
            for _ in range(rounds):
                torch.cuda.synchronize()
                began = time.perf_counter_ns()
                way.run()
                host.append((time.perf_counter_ns() - began) / 1e3)
            torch.cuda.synchronize()
        return {"time_us": statistics.median(way.times["cold"]), "host_us": statistics.median(host)}


def check_all(device: str, what: str, out: str, folders: list[str]) -> None:
    """Writes one line of JSON for each export. what: "try" (everything but time) or "time"."""
    import torch
    torch.backends.cudnn.allow_tf32 = False  # references are computed in float32
    with open(out, "w", encoding="utf-8") as file:
        for folder in map(Path, folders):
            line: Json = {"folder": str(folder), "failed": {}}
            began = time.monotonic()
            try:
                checks = Checks(folder, device)
                if what == "time" and device != "cpu":
                    line.update(checks.time())
                for name in checks.names() if what == "try" else ():
                    try:
                        getattr(checks, name)()
                    except Exception as error:
                        line["failed"][name] = f"{type(error).__name__}: {error}"[:500]
                del checks
                torch.cuda.empty_cache()
            except Exception as error:
                line["failed"][what] = f"{type(error).__name__}: {error}"[:500]
            line[f"{what}_s"] = time.monotonic() - began
            file.write(json.dumps(line) + "\n")
            file.flush()


def read_lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_python(*arguments: object, timeout: float, **more: str) -> tuple[int, str, str, float]:
    began = time.monotonic()
    try:
        made = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                              timeout=max(timeout, 1), check=False, env={**os.environ, **more})
        return made.returncode, made.stdout, made.stderr, time.monotonic() - began
    except subprocess.TimeoutExpired as error:
        return 124, str(error.stdout or ""), str(error.stderr or ""), time.monotonic() - began


def check(programs: list[Program], kind: str, what: str, options: argparse.Namespace, left: Callable[[], float],
          jobs: int = 1) -> None:
    """The checks of one kind of export, in a few processes."""
    began = time.monotonic()

    def one(part: int) -> None:
        told = programs[0].work / f"{kind}.{what}{part}"
        folders = [p.folder_of(kind) for p in programs[part::jobs]]
        code, out, err, _ = run_python(__file__, "--check", options.torch_device, what, told, *folders,
                                       timeout=left()) if folders else (0, "", "", 0)
        if code:
            print(f"{what} {kind}: exit {code}: {(err or out)[-600:]}")
        for line in read_lines(told):
            p = next(p for p in programs if line["folder"] == str(p.folder_of(kind)))
            known = p.line.setdefault(kind, {"failed": {}})
            known.update({**line, "failed": {**known["failed"], **line["failed"]}})

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, range(jobs)))
    print(f"{what} {kind}: {time.monotonic() - began:.0f} s", flush=True)


def kernelbench(programs: list[Program], options: argparse.Namespace, left: Callable[[], float]) -> None:
    """KernelBench's own evaluator on the ModelNew files."""
    side = Path(__file__).with_name("kernelbench_side.py")

    def judge(p: Program) -> None:
        model = p.folder_of("kernelbench") / "model_new.py"
        code, out, err, _ = run_python(side, options.kernelbench, p.task, model, p.work / f"{p.name}.kb",
                                       timeout=left(),
                                     NVIDIA_TF32_OVERRIDE="0")  # TF32 convolutions exceed its tolerance
        last = (out.strip().splitlines() or [""])[-1]
        found = json.loads(last) if code == 0 and last.startswith("{") else {"trouble": (err or out)[-400:]}
        p.line["their_verdict"] = {k: found.get(k) for k in ("compiled", "correct", "time_us", "trouble")}

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        list(pool.map(judge, [p for p in programs if p.name not in NOT_KERNELBENCH]))


def own_tests(programs: list[Program], left: Callable[[], float]) -> None:
    def test(job: tuple[Program, str]) -> None:
        p, kind = job
        folder = p.folder_of(kind)
        code, out, err, _ = run_python(folder / f"test_{p.name}.py", timeout=left())
        p.line.setdefault("test", {})[kind] = "ok" if code == 0 else (err or out)[-400:]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(test, [(p, k) for p in programs for k in KINDS]))


def own_bench(p: Program, left: Callable[[], float]) -> None:
    code, out, err, _ = run_python(p.folder_of("torch") / "bench.py", "--json", "--no-compile", "--seconds", 6,
                                   timeout=left())
    p.line["bench"] = json.loads(out)["rows"] if code == 0 else (err or out)[-400:]


def make(programs: list[Program], options: argparse.Namespace, left: Callable[[], float]) -> None:
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda p: p.make(options), programs))
        list(pool.map(lambda p: p.export(options), programs))


def judge(programs: list[Program], options: argparse.Namespace, left: Callable[[], float]) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda p: p.judge(options), programs))
    check(programs, "torch", "time", options, left)


def judge_again(programs: list[Program], options: argparse.Namespace, left: Callable[[], float]) -> None:
    """Repeats, alone, measurements that other work on the GPU may have disturbed."""
    for p in programs:
        if p.line.get("eval_us", 0) >= ENOUGH_US and abs(p.apart()) > LIMIT and left() > 15:
            p.line["eval_before_us"] = p.line["eval_us"]
            p.judge(options)


def try_all(programs: list[Program], options: argparse.Namespace, left: Callable[[], float]) -> None:
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(check, programs, kind, "try", options, left, 5 if kind == "torch" else 2) for kind in KINDS]
        jobs.append(pool.submit(own_tests, programs, left))
        if options.kernelbench:
            jobs.append(pool.submit(kernelbench, programs, options, left))
        for job in jobs:
            job.result()


def time_others(programs: list[Program], options: argparse.Namespace, left: Callable[[], float]) -> None:
    for kind in KINDS[1:]:
        check(programs, kind, "time", options, left)


def bench_some(programs: list[Program], options: argparse.Namespace, left: Callable[[], float]) -> None:
    for p in programs:
        if options.certify and p.name in CERTIFIED and left() > 20:
            p.certify(options)
            own_bench(p, left)


def summary(programs: list[Program]) -> None:
    good = 0
    print(f"{'program':16} {'verdict':8} {'eval us':>10} {'op us':>10} {'apart':>7} {'host us':>8}  "
          "tests, checks, KernelBench")
    for p in programs:
        x, op, apart = p.line, p.line.get("torch", {}), p.apart()
        tests = "".join("y" if x.get("test", {}).get(k) == "ok" else "n" for k in KINDS)
        failed = sorted({f"{k}:{n}" for k in KINDS for n in x.get(k, {}).get("failed", {"none": 1})})
        near = abs(apart) <= LIMIT or x.get("eval_us", 0) < ENOUGH_US
        kb = x.get("their_verdict", {}).get("correct")
        fine = near and tests == "yyy" and not failed and x.get("status") == "correct" and kb is not False
        good += fine
        print(f"{p.name:16} {x.get('status', '-'):8} {x.get('eval_us', 0):10.1f} {op.get('time_us', 0):10.1f} "
              f"{apart:+7.1%} "
              f"{op.get('host_us', 0):8.1f}  {tests} {','.join(failed) or 'ok'} {kb}{'' if fine else '  <--'}")
        rows = x.get("bench")  # or the error
        for row in rows if isinstance(rows, list) else []:
            if row.get("apart") is not None:
                print(f"    bench {row['mode']:6} {row['way']:10} {row['time_us']:10.1f} "
                      f"certified {row['certified_us']:10.1f} ({row['apart']:+.1%})")
        for kind in KINDS:
            for name, why in x.get(kind, {}).get("failed", {}).items():
                print(f"    {kind} {name}: " + why.replace("\n", " ")[:240])
            if x.get("test", {}).get(kind, "ok") != "ok":
                print(f"    test {kind}: " + x["test"][kind].replace("\n", " ")[-240:])
        if x.get("their_verdict", {}).get("trouble"):
            print("    KernelBench:", str(x["their_verdict"]["trouble"])[:300])
        for line in x.get("trouble", [x["headline"]] if x.get("headline") else []):
            print("   ", line.replace("\n", " ")[:300])
    print(f"{good} of {len(programs)} programs as promised")


def main() -> int:
    if sys.argv[1:2] == ["--check"]:
        check_all(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cutegen")
    parser.add_argument("tree", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--only", default=",".join([*SIZES, *(f"recipe_{r}" for r in RECIPES)]))
    parser.add_argument("--certify", action="store_true")
    parser.add_argument("--programs", type=Path, help="programs of recipes from an earlier run")
    parser.add_argument("--device", default="cuda:0", help="sim:h200 tests only what needs no GPU")
    parser.add_argument("--limit-s", type=float, default=600)
    options = parser.parse_args()
    options.end = time.monotonic() + options.limit_s

    def left() -> float:
        return options.end - time.monotonic()

    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # many processes share the cores
    os.environ.setdefault("OMP_NUM_THREADS", "4")
    options.torch_device = "cpu" if options.device.startswith("sim:") else options.device
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        programs = [Program(name, options.tree, Path(folder), options.programs) for name in options.only.split(",")]
        for stage in (make, judge, try_all, bench_some, time_others, judge_again):
            began = time.monotonic()
            try:
                if left() > 0:
                    stage(programs, options, left)
            except Exception as error:  # the other stages go on
                print(f"{stage.__name__}: {type(error).__name__}: {error}")
            print(f"{stage.__name__}: {time.monotonic() - began:.0f} s", flush=True)
            with open(options.out, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(p.line) + "\n" for p in programs)
        summary(programs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
