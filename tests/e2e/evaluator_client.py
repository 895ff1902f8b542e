# SPDX-License-Identifier: Apache-2.0
"""One evaluator process for many tasks and programs, spoken to by its own protocol.

Example:
    with Evaluator(harness.BIN, environment) as evaluator:
        opened = evaluator.open_task("tasks/relu.py")
        verdict = evaluator.evaluate(load_program("out/"))
"""
from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import harness
from harness import Json

sys.path.insert(0, str(harness.ROOT / "python"))
from cutegen_worker.wire import Channel, Closed  # noqa: E402 - the frames are the same everywhere

SCHEMA = "cutegen.evaluator.v1"


class Refused(Exception):
    """The evaluator's answer is an error; args[0] is its JSON."""


def load_program(folder: str | Path) -> Json:
    """The JSON form of a program folder."""
    folder = Path(folder)
    plan = json.loads((folder / "plan.json").read_text())
    sources = {name: (folder / name).read_text() for name in plan["sources"]}
    return {"schema": "cutegen.program.v1", "sources": sources, "plan": plan}


class Evaluator:
    def __init__(self, environment: dict[str, str], **options: Any) -> None:
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [str(harness.BIN / "cutegen-evaluator")], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, close_fds=False,  # Python's own are closed by exec
            preexec_fn=lambda: self._place(theirs.fileno()))
        theirs.close()
        self.channel = Channel(ours.detach())
        self.task: str | None = None
        self.ask("hello", options={"device": "sim:h200", "python": "", "require_sandbox": False,
                                   "use_cache": True, "runner_threads": 0, "log_level": "",
                                   **options})

    @staticmethod
    def _place(fd: int) -> None:
        os.dup2(fd, 3)
        os.set_inheritable(3, True)

    def ask(self, kind: str, **body: Any) -> Json:
        self.channel.send({"schema": SCHEMA, "type": kind, **body})
        while True:
            reply = self.channel.receive()
            if "error" in reply:
                raise Refused(reply["error"])
            if reply["type"] != "progress":
                return reply

    def open_task(self, file: str | Path) -> Json:
        opened = self.ask("open_task", file=str(Path(file).absolute()))["opened"]
        self.task = opened["task"]["id"]
        return opened

    def evaluate(self, program: Json, up_to: str = "timing") -> Json:
        request = {"program": program, "up_to": up_to, "profile": False}
        return self.ask("evaluate", task_id=self.task, request=request)["verdict"]

    def close(self) -> None:
        self.channel.socket.close()
        self.process.wait(timeout=30)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = ["Closed", "Evaluator", "Refused", "load_program"]
