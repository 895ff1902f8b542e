# SPDX-License-Identifier: Apache-2.0
"""Kills a run that asks a scripted model with SIGKILL at random moments and resumes it, until it has ended.

A random event of the journal, and a random pause after it, choose the moment. After the kills, the journal must have
the evaluations and the answers of an undisturbed run, each once. No answer is paid for twice, and a replay agrees.
CUTEGEN_KILLS=60 kills more often than the default does; CUTEGEN_KILL_SEED chooses other moments.
"""
from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import crash
import harness
import models
from harness import Json

Command = Callable[[harness.ModelServer, str], list[object]]
KILLS_OF_A_RUN = 4


class Case(harness.Case):
    kills, seed = int(os.environ.get("CUTEGEN_KILLS", 3)), int(os.environ.get("CUTEGEN_KILL_SEED", 1))
    keys = {"ANTHROPIC_API_KEY": models.KEY}

    def check_kills(self, command: Command, script: list[Json], calm: crash.Journal) -> None:
        """Kills runs of `command`, whose second argument names the folder of runs, until there were enough kills."""
        killed = resumed = number = 0
        while killed < self.kills:
            self.assertLess(number, self.kills, "the runs end before they are killed")
            most = min(KILLS_OF_A_RUN, self.kills - killed)
            journal, kills = self.disturbed(command, f"rough{number}", script, most, len(calm.events))
            self.check_journal(journal, calm)
            killed, resumed, number = killed + kills, resumed + journal.count("resumed"), number + 1
            print(f"{killed} kills of {number} runs, {resumed} resumed", file=sys.stderr, flush=True)
        self.assertGreater(resumed, 0)

    def disturbed(self, command_of: Command, name: str, script: list[Json], most: int,
                  length: int) -> tuple[crash.Journal, int]:
        """A run that is killed up to `most` times and resumed to its end."""
        chance, kills, runs = random.Random(f"{self.seed} {name}"), 0, self.folder / name
        resume = ["resume", "--runs", runs, "--json"]
        with models.scripted(self.folder, script) as server:
            command = command_of(server, name)
            while kills < most:
                before = self.events(runs)
                process = self.start(*command, env=self.keys)
                self.wait_for_events(process, runs, len(before) + chance.randint(0, length // 3))
                harness.time.sleep(chance.uniform(0, 0.6))
                ended = process.poll() is not None
                process.kill()
                process.communicate()
                self.assertEqual(self.events(runs)[:len(before)], before, "the journal lost an event")
                if self.began(name):
                    command = resume
                if ended:
                    break
                kills += 1
            result = self.cutegen(*command, env=self.keys, timeout=600)
            asked = [str(entry["body"]["messages"]) for entry in server.log()]
        self.assertIn(result.code, (0, 2), result)  # 2: the last process had ended the run
        self.assertLessEqual(len(asked) - len(set(asked)), kills, "more was asked again than was under way")
        replayed = self.cutegen("optimize", "--replay", "last", "--runs", runs, timeout=200)
        self.assert_code(replayed, 0)
        return crash.Journal(runs), kills

    def check_journal(self, journal: crash.Journal, calm: crash.Journal) -> None:
        self.assertEqual(len(journal.runs), 1)
        self.assertEqual(journal.events[-1][0], "finished")
        self.assertEqual(journal.judged(), calm.judged(), "a program was evaluated twice, or never")
        paid = [data["request_hash"] for data in journal.data_of("call_ended") if "reply" in data]
        self.assertEqual(len(set(paid)), len(paid), "an answer was paid twice")
        for kind, key in (("answered", "candidate"), ("finished", "best")):
            self.assertEqual(*([data.get(key) for data in j.data_of(kind)] for j in (journal, calm)))

    @staticmethod
    def events(runs: Path) -> list[crash.Event]:
        """What the journal has now; nothing before there is one."""
        try:
            return crash.Journal(runs).events if (runs / "cutegen.db").exists() else []
        except harness.sqlite3.Error:
            return []

    def wait_for_events(self, process: harness.Process, runs: Path, count: int) -> None:
        while process.poll() is None and len(self.events(runs)) < count:
            harness.time.sleep(0.02)

    def began(self, name: str) -> bool:
        """Whether there is a run to resume, as the program sees it."""
        listed = self.cutegen("runs", "--runs", self.folder / name, "--json")
        return listed.code == 0 and bool(listed.json()["runs"])
