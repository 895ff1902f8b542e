#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ncu without counters, for tests: it starts the given program, then prints a table.

Its file name says what it does: works, refused, refused_to_users, fails_in_namespaces, old, unnamed, garbage,
short_rows, hangs, hangs_later, unknown_metric, leaves_a_child, fails, silent, another_kernel. The text after a dot is
the name of the kernels that it reports.
"""
from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

PERMISSION = ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
              "Counters on the target device 0.\n")
VALUES = {"%": "91.25", "ns": "2,500", "byte": "1,048,576", "byte/s": "4,194,304,000,000"}
PERCENT = ("pct_of_peak", "_pct", "hit_rate.pct", "uniform.pct")
RULE = ("This workload is utilizing greater than 80.0% of the available compute or memory performance of the "
        "device. Start by analyzing DRAM in the Memory Workload Analysis section.")
UNKNOWN = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"


def unit_of(metric: str) -> str:
    if metric.startswith("gpu__time"):
        return "ns"
    if metric.startswith("dram__bytes"):
        return "byte/s" if "per_second" in metric else "byte"
    return "%" if any(word in metric for word in PERCENT) else "inst"


def row(fields: Sequence[object]) -> str:
    return ",".join('"' + str(f).replace('"', '""') + '"' for f in fields) + "\n"


def table(kernels: list[str], metrics: list[str]) -> str:
    out = row(["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
               "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name",
               "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"])
    for i, kernel in enumerate(kernels):
        head = [i, 7, "cutegen-runner", "127.0.0.1", kernel, 1, 7, "(1, 1, 1)", "(1, 1, 1)", 0, "9.0"]
        for metric in metrics:
            unit = unit_of(metric)
            value = "20.5" if metric.startswith("sm__throughput") else VALUES.get(unit, "42")
            out += row(head + ["Command line profiler metrics", metric, unit, value])[:-1] + ",\n"
        out += row(head + ["SpeedOfLight", "", "", "", "SOLBottleneck", "INF", RULE, "", ""])
    return out


def main() -> int:
    mode, _, kernel = os.path.basename(sys.argv[0]).partition(".")
    if "--version" in sys.argv:
        says = {"old": "Version 2021.1.0.0 (build 1)", "unnamed": "a shell"}
        print("NVIDIA (R) Nsight Compute Command Line Profiler\n" +
              says.get(mode, "Version 2025.3.1.0 (build 36398880)"))
        return 0
    options = dict(zip(sys.argv[1:-1], sys.argv[2:]))
    log, metrics = options["--log-file"], options["--metrics"].split(",")
    kernels = ["probe" if len(metrics) == 1 else kernel or "f"] * int(options["--launch-count"])

    def say(text: str) -> None:
        with open(log, "w", encoding="utf-8", errors="surrogateescape") as out:
            out.write(text)

    if mode == "hangs":
        time.sleep(1000)
    if mode == "leaves_a_child":
        subprocess.Popen(["sleep", "1000"])
    if mode == "unknown_metric" and UNKNOWN in metrics:
        say(f"==ERROR== Failed to find metric {UNKNOWN}\n")
        return 1
    code = subprocess.run([sys.argv[-1]], pass_fds=[3], check=False).returncode
    if mode == "hangs_later":
        time.sleep(1000)
    with open("/proc/self/status", encoding="utf-8") as status:
        powerless = "CapEff:\t0000000000000000" in status.read()
    if mode == "refused" or (mode == "refused_to_users" and powerless):
        say(PERMISSION)
        return 1
    if mode == "fails_in_namespaces" and os.getppid() < 10:
        say("==ERROR== Failed to prepare the profiler.\n")
        return 1
    if mode == "fails":
        say("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n")
        return 1
    if mode == "another_kernel":
        kernels = ["innocent"] * len(kernels)
    text = "==PROF== Connected to process 7\n" + table(kernels, metrics) + "==PROF== Disconnected\n"
    if mode == "garbage":
        text = "\x1b[2J\x00\udcff" * 1000 + '"ID",\n"0","\n' * 100
    if mode == "short_rows":
        text = text.replace('"9.0",', "")
    if mode != "silent":
        say(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
