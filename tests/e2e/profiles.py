# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=30
"""Profiles of a cuda: device from end to end, without a GPU: a driver without one (tests/fake_cuda) and an ncu without
counters (tests/fake_ncu).
"""
from __future__ import annotations

import unittest

import gpu
import harness
from harness import Json

FAKE_NCU = harness.ROOT / "tests/fake_ncu/fake_ncu.py"


class Profiles(gpu.FakeGpu):
    def machine(self, how: str) -> dict[str, str]:
        """A driver without a GPU, and an ncu whose name says what it does."""
        link = gpu.FAKE.parent / "fake_ncu" / how
        link.parent.mkdir(exist_ok=True)
        try:
            link.symlink_to(FAKE_NCU)
        except FileExistsError:
            pass
        return {**self.driver("good"), "CUTEGEN_NCU": str(link)}

    def verdict(self, how: str) -> Json:
        task = self.write("sevens.py", gpu.SEVENS)
        result = self.cutegen("eval", task, self.program("sevens"), "--device", "cuda:0", "--profile", "--json",
                              env=self.machine(how), timeout=240)
        self.assert_code(result, 0)
        return result.json()["verdicts"][0]["verdict"]

    def test_the_gpus_counters_with_the_simulators_beside_them(self) -> None:
        verdict = self.verdict("works.sevens")
        profile = verdict["profile"]
        self.assertEqual(profile["source"], "ncu 2025.3.1.0", profile)
        kernel = profile["kernels"][0]
        self.assertEqual((kernel["kernel"], kernel["origin"]), ("sevens", "measured"))
        self.assertEqual(kernel["time_ns"], 2500)
        self.assertEqual(kernel["counters"]["dram_read_bytes"], 1 << 20)
        self.assertGreater(kernel["modelled"]["warp_instructions"], 0)
        self.assertTrue(kernel["lines"])
        self.assertEqual((kernel["diagnosis"]["bound"], kernel["diagnosis"]["origin"]), ("memory", "measured"))
        self.assertIn("memory bound", verdict["feedback"]["bottleneck"])

    def test_refused_the_simulators_counters_serve_and_the_remedy_is_told(self) -> None:
        verdict = self.verdict("refused.sevens")
        profile = verdict["profile"]
        self.assertEqual(profile["source"], "simulator")
        self.assertEqual(profile["kernels"][0]["origin"], "modelled")
        self.assertTrue(profile["kernels"][0]["diagnosis"]["bound"])
        for word in ("ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0"):
            self.assertIn(word, profile["note"])
        self.assertIn("profile: " + profile["note"], verdict["skipped"])

    def test_the_doctor_tries_the_counters(self) -> None:
        for how, state, words in (("works", "ok", "reads the counters of cuda:0"),
                                  ("refused", "warning", "ERR_NVGPUCTRPERM"),
                                  ("old", "warning", "too old")):
            checks = self.cutegen("doctor", "--json", env=self.machine(how)).json()["checks"]
            counters = next(c for c in checks if c["name"] == "hardware counters")
            self.assertEqual(counters["state"], state, counters)
            self.assertIn(words, counters["detail"])
            self.assertEqual(bool(counters["mend"]), state != "ok")


if __name__ == "__main__":
    if not gpu.FAKE.exists():
        raise unittest.SkipTest(f"no {gpu.FAKE}: build the tests first")
    harness.main()
