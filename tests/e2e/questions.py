# SPDX-License-Identifier: Apache-2.0
# ctest: cost=25
"""The first questions of many tasks: no sentence contradicts the policy or the device, and no question is too long.

The tasks resemble KernelBench's levels 1 and 2. A commit chooses a quarter of them; with CUTEGEN_ALL_CASES=1, the test
takes all of them. With CUTEGEN_KERNELBENCH=FOLDER, the same checks run on its files.
"""
from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import harness
from harness import Json

MOST_TOKENS = 7000

# Statements that are wrong for every task, and those that are wrong for a float32 task.
FORBIDDEN = (r"(?i)(never|do not|don't|neither).{0,40}tensor cores",
             r"(?i)tensor cores? (only )?if (the math mode|the task) (allows|permits)",
             r"(?i)use it only (in|if) the math mode",
             r"(?i)with less precision than the task's math mode",
             r"(?i)structure has settled",
             r"(?i)the roofline is (a|the) limit")
FORBIDDEN_BY_CLASS = (("matmul", r"(?i)tensor cores gain nothing"), ("conv", r"(?i)tensor cores gain nothing"),
                      ("attention", r"(?i)tensor cores gain nothing"),
                      ("softmax", r"(?i)three tf32 products"), ("scan", r"(?i)three tf32 products"),
                      ("pooling", r"(?i)tensor cores"))
# On sm_80, nothing that only Hopper has may be recommended.
FORBIDDEN_ON_SM80 = (r"sm_90a", r"(?i)it runs[^;.]{0,60}(TMA|wgmma|clusters)", r"SM90_")


def task(body: str, inputs: str, sizes: str = "n = 64\nm = 96\nc = 8", init: str = "", arguments: str = "") -> str:
    return f"""import torch
import torch.nn as nn
import torch.nn.functional as F

{sizes}


class Model(nn.Module):
    def __init__(self{", " + init if init else ""}):
        super().__init__()
{body}

def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{arguments}]
"""


def function(expression: str, inputs: str, arguments: str = "x", sizes: str = "n = 64\nm = 96\nc = 8") -> str:
    return task(f"\n    def forward(self, {arguments}):\n        return {expression}\n", inputs, sizes)


def module(layer: str, expression: str, inputs: str, sizes: str = "n = 64\nm = 96\nc = 8") -> str:
    return task(f"        self.layer = {layer}\n\n    def forward(self, x):\n        x = self.layer(x)\n"
                f"        return {expression}\n", inputs, sizes)


X, IMAGE = "torch.rand(n, m)", "torch.rand(4, c, n, n)"
TASKS = {
    "product": function("x @ y", "torch.rand(n, n), torch.rand(n, n)", "x, y"),
    "diagonal": function("torch.diag(x) @ y", "torch.rand(n), torch.rand(n, m)", "x, y"),
    "triangle": function("torch.triu(x @ y)", "torch.rand(n, n), torch.rand(n, n)", "x, y"),
    "softmax": function("torch.softmax(x, dim=1)", X),
    "rms": function("x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5)", X),
    "pooling": function("F.max_pool2d(x, 3, 2, 1)", IMAGE),
    "total": function("x.sum(dim=1, keepdim=True)", X),
    "scan": function("torch.cumsum(x, dim=1)", X),
    "scan_product": function("torch.cumprod(x, dim=1)", X),
    "loss": function("F.cross_entropy(x, t)", "torch.rand(n, m), torch.randint(0, m, (n,))", "x, t"),
    "attention": function("F.scaled_dot_product_attention(q, k, v)",
                          "torch.rand(2, 2, n, 32), torch.rand(2, 2, n, 32), torch.rand(2, 2, n, 32)", "q, k, v"),
    "conv": module("nn.Conv2d(c, 16, 3)", "x", IMAGE),
    "matrix_vector": function("x @ y", "torch.rand(n, m), torch.rand(m, 1)", "x, y"),
    "sum_of_product": module("nn.Linear(m, n)", "(x / 2).sum(1, keepdim=True)", X),
    "chain": module("nn.Linear(m, n)", "x.sum(1, keepdim=True).max(1, keepdim=True)[0].mean(1, keepdim=True)", X),
    "clamped": module("nn.Linear(m, n)", "F.mish(torch.logsumexp(torch.clamp(x * 2, -1, 1), 1, keepdim=True))", X),
    "scaled": module("nn.Linear(m, n)", "torch.sigmoid(x) * 0.5 + x", X),
    "up": module("nn.ConvTranspose2d(c, 16, 3)", "x.mean((2, 3), keepdim=True)", IMAGE),
    "conv_relu": module("nn.Conv2d(c, 16, 3)", "torch.relu(x) + 1.0", IMAGE),
    "normed": module("nn.Sequential(nn.Linear(m, n), nn.BatchNorm1d(n).eval())", "x", X),
}
# Text about algebra that a task's question must contain; the other tasks must have none.
ALGEBRA = {"triangle": "keeps one triangle", "sum_of_product": "sum of the columns of the product",
           "chain": "runs over one element", "up": "over all positions"}
THREE_PRODUCTS = ("product", "attention", "scaled")


def tokens_of(text: str) -> int:
    """Tokens as src/llm/tokens.cpp estimates them."""
    per = {"letter": 5, "digit": 3, "sign": 4}
    total = 0
    for run in re.finditer(r"(?P<letter>[A-Za-z_]+)|(?P<digit>[0-9]+)|(?P<blank>\s+)"
                           r"|(?P<foreign>[^\x00-\x7f]+)|(?P<sign>([\x00-\x7f])\6*)", text):
        kind, size = run.lastgroup or "sign", len(run.group().encode())
        if kind == "blank":
            total += run.group() != " "
        else:
            total += -(-size // per.get(kind, 2))
    return total


def request_tokens(request: Json) -> int:
    tools = sum(24 + tokens_of(t["name"] + " " + t["description"]) +
                tokens_of(json.dumps(t["parameters"], separators=(",", ":"))) for t in request.get("tools", []))
    return tokens_of(request["system"]) + tools + sum(8 + tokens_of(m.get("text", "")) for m in request["messages"])


class Questions(harness.Case):
    def first_questions(self, sources: dict[str, str], device: str = "sim:h200", *more: object) -> dict[str, Json]:
        """{name: the first question} of {name: task}. Starts all runs at once, and stops them when all have asked."""
        suite = self.folder / f"suite_{device[4:]}"
        (suite / "level1").mkdir(parents=True)
        for number, (name, source) in enumerate(sources.items(), 1):
            (suite / "level1" / f"{number}_{name}.py").write_text(source)
        questions = suite / "questions"
        process = self.start("bench", "--kernelbench", suite, "--device", device, "--model", f"relay:{questions}",
                             "--jobs",
                             len(sources), "--evaluators", 1, "--runs", suite / "runs", "--out", suite / "out", *more)
        end = time.monotonic() + 500
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
            asked = sorted(questions.glob("*.request.json"))
            if len(asked) == len(sources):
                break
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)
        self.assertEqual(len(asked), len(sources), output)
        return {name: self.question_of(source, asked) for name, source in sources.items()}

    def question_of(self, source: str, files: list[Path]) -> Json:
        module = source[source.index("class Model"):].strip()
        found = [request for request in (json.loads(file.read_text()) for file in files)
                 if module in "\n".join(m.get("text", "") for m in request["messages"])]
        self.assertEqual(len(found), 1, module)
        return found[0]

    def check(self, name: str, request: Json, device: str = "sim:h200") -> str:
        text = request["system"] + "\n".join(m.get("text", "") for m in request["messages"])
        wrong = list(FORBIDDEN)
        kinds = self.match(r"# What works for (.*)", text)[1]
        wrong += [statement for word, statement in FORBIDDEN_BY_CLASS if word in kinds.split("+")[0]]
        if device == "sim:a100":
            wrong += FORBIDDEN_ON_SM80
        for statement in wrong:
            found = re.search(statement, text)
            self.assertIsNone(found, f"{name} ({kinds}): {found and text[max(0, found.start() - 80):found.end() + 80]}")
        self.assertLessEqual(request_tokens(request), MOST_TOKENS, name)
        return text

    def test_no_first_question_is_long_or_contradicts_the_policy(self) -> None:
        for name, request in self.first_questions(harness.in_turn(TASKS, 4)).items():
            with self.subTest(task=name):
                text = self.check(name, request)
                wanted = ALGEBRA.get(name)
                if wanted:
                    self.assertRegex(text, wanted)
                elif name not in ("normed",):
                    self.assertNotIn("Look for algebra first", text)
                if name in THREE_PRODUCTS:
                    self.assertRegex(text, "# (Products as accurate as float32 on|Float32 products on Hopper's) "
                                           "tensor cores")

    def test_a_question_names_what_its_device_runs(self) -> None:
        sources = {name: TASKS[name] for name in ("product", "conv")}
        for name, request in self.first_questions(sources, "sim:a100", "--no-planner").items():
            text = self.check(name, request, "sim:a100")
            self.assertIn("no TMA, no clusters and no wgmma", text)

    def test_the_page_about_three_products_holds_a_correct_program(self) -> None:
        page = (harness.ROOT / "docs/components/three_products.md").read_text()
        program = self.folder / "program"
        program.mkdir()
        (program / "kernel.cu").write_text(page.split("```cuda\n")[1].split("```")[0])
        (program / "plan.json").write_text(json.dumps({
            "cutegen": 1, "dialect": "cute", "arch": ["sm_80+"], "sources": ["kernel.cu"],
            "symbols": {"m": "dim(x,0)", "depth": "dim(x,1)", "n": "dim(y,0)"},
            "steps": [{"id": "product", "kernel": "product", "grid": ["ceil_div(n,64)", "ceil_div(m,64)", 1],
                       "block": [128, 1, 1],
                       "args": [{"tensor": "x"}, {"tensor": "y"}, {"tensor": "out"}, {"i32": "m"}, {"i32": "n"},
                                {"i32": "depth"}]}]}))
        path = self.write("p.py", function("x @ y.T", "torch.rand(n, 512), torch.rand(m, 512)", "x, y"))
        self.assert_code(self.cutegen("eval", path, program, "--device", "sim:h200", timeout=300), 0)

    def test_kernelbench_has_no_long_or_contradicting_first_question(self) -> None:
        folder = os.environ.get("CUTEGEN_KERNELBENCH")
        if not folder:
            self.skipTest("CUTEGEN_KERNELBENCH is not set")
        files = []
        for pattern in ("level1/[159]0_*", "level1/1_*", "level1/[289]9_*", "level1/97_*", "level1/23_*",
                        "level1/4[27]_*", "level2/14_*", "level2/[1248]2_*", "level2/[13]8_*", "level2/45_*",
                        "level2/66_*", "level2/80_*"):
            files += sorted(Path(folder).glob(pattern + ".py"))
        for name, request in self.first_questions({file.stem: file.read_text() for file in files}).items():
            with self.subTest(task=name):
                self.check(name, request)


if __name__ == "__main__":
    harness.main()
