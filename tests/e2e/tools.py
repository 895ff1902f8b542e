# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=55
"""Runs whose model calls tools, in each of the three APIs.

The model reads a page, compiles a draft with a fault, repairs it, lets cutegen evaluate it and answers with it. Then it
lets cutegen evaluate a faster draft and answers with a slower program: cutegen keeps the draft. A killed and resumed
run neither loses nor repeats a draft, and a replay finds every question as recorded.
"""
from __future__ import annotations

import json
import time

import harness
from harness import Json

KEY = "sk-end-to-end-secret-0123456789"
MODELS = {"openai": "gpt-5", "openai-responses": "gpt-5", "anthropic": "claude-opus-4-5"}

SOURCE = """extern "C" __global__ void go(const float* x, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i];
    out[i] = (v < 0.0f ? 0.0f : v) + one;
  }
}
"""
PLAN = {"cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"],
        "symbols": {"n": "size(x)"},
        "steps": [{"id": "go", "kernel": "go", "grid": [8, 1, 1], "block": [32, 1, 1],
                   "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]}


def call(tool: str, /, **arguments: object) -> Json:
    return {"name": tool, "arguments": arguments}


def shape(summary: str, grid: int, block: int) -> str:
    edits = [{"path": "/steps/0/grid/0", "value": grid}, {"path": "/steps/0/block/0", "value": block}]
    return f"SUMMARY: {summary}\n\n```plan\n{json.dumps(edits)}\n```\n"


MEND = "```edit kernel.cu\n<<<<<<< SEARCH\n+ one;\n=======\n+ 1.0f;\n>>>>>>> REPLACE\n```\n"

# Replies in the order of the questions and of the turns within them.
REPLIES: list[Json] = [
    {"calls": [call("read_docs", name="vec")]},
    {"text": "A first draft.", "calls": [call("compile", kernel=SOURCE, plan=json.dumps(PLAN))]},
    {"calls": [call("compile", draft="d1", edits=MEND), call("rm", path="/")]},
    {"calls": [call("evaluate", draft="d2")]},
    {"text": "SUMMARY: a loop over the grid\nWHY: it compiles\nDRAFT: d2\n"},
    {"calls": [call("evaluate", edits=shape("fill the device", 64, 128)), call("diff_best")]},
    {"text": shape("one block", 1, 128)},
    {"text": shape("larger blocks", 256, 256)},
]


def result_texts(body: Json) -> list[str]:
    """The results of tools in the newest messages of a request, in any API."""
    out: list[str] = []
    for item in body["messages"] if "messages" in body else body.get("input", []):
        if item.get("role") == "tool":
            out.append(item["content"])
        elif item.get("type") == "function_call_output":
            out.append(item["output"])
        elif isinstance(item.get("content"), list):
            out += [b["content"] for b in item["content"] if b.get("type") == "tool_result"]
    return out


class Tools(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))
        self.keys = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}

    def server(self) -> harness.ModelServer:
        replies = [{"reasoning": "thinking", **reply} for reply in REPLIES]
        return harness.ModelServer(self.folder, replies)

    def arguments(self, server: harness.ModelServer, provider: str, name: str) -> list[object]:
        return ["optimize", self.task, "--model", f"{provider}:{MODELS[provider]}", "--model-url",
                server.base + "/v1", "--runs", self.folder / name, "--out", self.folder / (name + "-out"),
                "--dialect", "cuda", "--chains", 1, "--no-planner", "--evaluations", 4, "--json"]

    @staticmethod
    def steps(run: Json) -> list[tuple[object, ...]]:
        return [(s["id"], s["change"], s["status"], s["decision"], s["drafted"], s["attempts"])
                for s in run["steps"]]

    def run_with(self, provider: str) -> tuple[Json, list[Json]]:
        with self.server() as server:
            result = self.cutegen(*self.arguments(server, provider, provider), env=self.keys, timeout=400)
            self.assert_code(result, 0)
            return result.json(), server.log()

    def check(self, run: Json, log: list[Json]) -> None:
        self.assertEqual(self.steps(run), [
            ("c1", "a loop over the grid", "correct", "accepted", True, 1),
            ("c2", "fill the device", "correct", "accepted", True, 1),
            ("c3", "one block", "correct", "open", True, 1),
            ("c4", "larger blocks", "correct", "accepted", False, 1)])
        self.assertEqual((run["evaluations"], run["models"]["tool_calls"]), (4, 7))
        self.assertEqual(run["best"]["id"], "c4")
        self.assertEqual(len(log), len(REPLIES), "every turn once")
        texts = result_texts(log[4]["body"])
        for text, part in zip(texts, ("Compiled for", 'identifier "one" is undefined', "d2 compiles",
                                      "no tool 'rm'", "kept as c1")):
            self.assertIn(part, text)
        self.assertIn("fill the device", json.dumps(log[7]["body"]), "the draft is in the history")
        self.assertIn("+++ plan.json", result_texts(log[6]["body"])[-1])

    def test_a_model_works_with_tools_in_every_api(self) -> None:
        for provider in MODELS:
            with self.subTest(provider=provider):
                run, log = self.run_with(provider)
                self.check(run, log)
        self.check_reasoning_went_back(log)
        self.check_replay("anthropic")
        report = self.folder / "report.html"
        self.assert_code(self.cutegen("report", "last", "--runs", self.folder / "anthropic", "--out",
                                      report), 0)
        self.assertIn("draft", report.read_text())

    def check_reasoning_went_back(self, log: list[Json]) -> None:
        said = log[1]["body"]["messages"][-2]["content"]
        self.assertEqual([b["type"] for b in said], ["thinking", "tool_use"])
        self.assertEqual(said[0]["signature"], "signed")

    def check_replay(self, name: str) -> None:
        again = self.cutegen("optimize", "--replay", "last", "--runs", self.folder / name, timeout=240)
        self.assert_code(again, 0)
        self.assertIn("every action and every answer is as recorded", again.out)

    def test_a_killed_run_goes_on_in_the_middle_of_its_tools(self) -> None:
        with self.server() as server:
            command = self.arguments(server, "openai", "killed")
            for after in (3, 4, 6):
                process = self.start(*command, env=self.keys)
                end = time.monotonic() + 200
                while len(server.log()) < after and time.monotonic() < end and process.poll() is None:
                    time.sleep(0.02)
                process.kill()
                process.communicate()
                command = ["resume", "--runs", self.folder / "killed", "--json"]
            result = self.cutegen(*command, env=self.keys, timeout=400)
            self.assert_code(result, 0)
            run = result.json()
        self.assertEqual([s[:5] for s in self.steps(run)],
                         [("c1", "a loop over the grid", "correct", "accepted", True),
                          ("c2", "fill the device", "correct", "accepted", True),
                          ("c3", "one block", "correct", "open", True),
                          ("c4", "larger blocks", "correct", "accepted", False)])
        self.assertEqual((run["evaluations"], run["models"]["tool_calls"]), (4, 7))
        self.check_replay("killed")

    def test_a_relay_takes_calls_as_files(self) -> None:
        questions = self.folder / "q"
        questions.mkdir()
        answers = [REPLIES[1], {"calls": [REPLIES[2]["calls"][0]]}, REPLIES[3], REPLIES[4]]
        for number, reply in enumerate(answers, 1):
            (questions / f"{number:04}.answer.json").write_text(json.dumps(reply))
        result = self.cutegen("optimize", self.task, "--model", f"relay:{questions}", "--runs",
                              self.folder / "relay", "--out", "best", "--dialect", "cuda", "--chains", 1,
                              "--no-planner", "--evaluations", 1, "--json", timeout=200)
        self.assert_code(result, 0)
        run = result.json()
        self.assertEqual((run["best"]["id"], run["evaluations"], run["models"]["tool_calls"]), ("c1", 1, 3))
        first = (questions / "0001.request.md").read_text()
        for part in ("## Tool `evaluate`", "0001.answer.json", "DRAFT: d2"):
            self.assertIn(part, first)
        second = (questions / "0002.request.md").read_text()
        self.assertIn("## You answered", second)
        self.assertIn('identifier "one" is undefined', second)

    def test_tools_can_be_left_out(self) -> None:
        with self.server() as server:
            arguments = self.arguments(server, "openai", "none") + ["--tools", "off"]
            process = self.start(*arguments, env=self.keys)
            end = time.monotonic() + 200
            while not server.log() and time.monotonic() < end and process.poll() is None:
                time.sleep(0.05)
            process.kill()
            process.communicate()
            self.assertNotIn("tools", server.log()[0]["body"])
            wrong = [a for a in arguments[:-1] if a != "--json"] + ["sometimes"]
            self.assert_error(self.cutegen(*wrong, env=self.keys), 2, "--tools")


if __name__ == "__main__":
    harness.main()
