# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 cost=25
"""Tensor copies from end to end on a simulated H200: a plan with a tensor map, compiled, judged, timed."""
from __future__ import annotations

import shutil
from pathlib import Path

import harness

PROGRAM = harness.ROOT / "tests/exports/tensor_map"


# {name: (text of the source, its replacement, status, text in the verdict)}
CHANGES = {
    "as_it_is": ("", "", "correct", "correct on"),
    "a_read_before_the_mbarrier": ("while (!done)", "if (false)", "failed", "async_copy_pending"),
    "too_few_expected_bytes": ('"r"(32 * 64 * 4)', '"r"(32 * 64 * 4 + 16)', "failed", "deadlock"),
    "a_box_that_tma_does_not_allow": ("{1, 2, 64, 32, 0", "{1, 2, 64, 320, 0", "failed",
                                      r"box\[1\] is 320 \(1 to 256\)"),
}


class TensorMaps(harness.Case):
    def program(self, name: str, old: str, new: str) -> Path:
        folder = self.folder / name
        shutil.copytree(PROGRAM, folder)
        source = (folder / "kernel.cu").read_text()
        self.assertIn(old, source)
        (folder / "kernel.cu").write_text(source.replace(old, new) if old else source)
        return folder

    def test_a_matrix_comes_through_its_tensor_map_and_each_fault_is_found(self) -> None:
        programs = [self.program(name, old, new) for name, (old, new, *_) in CHANGES.items()]
        result = self.cutegen("eval", PROGRAM / "task.py", *programs, "--device", "sim:h200", "--json", timeout=300)
        self.assert_code(result, 3)
        for entry, (name, (_, _, status, words)) in zip(result.json()["verdicts"], CHANGES.items(), strict=True):
            with self.subTest(name):
                self.assertEqual(entry["verdict"]["status"], status, str(entry))
                self.assertRegex(str(entry["verdict"]), words)


if __name__ == "__main__":
    harness.main()
