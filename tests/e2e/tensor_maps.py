# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600
"""Tensor copies from end to end on a simulated H200: a plan with a tensor map, compiled, judged, timed."""
import shutil

import harness

PROGRAM = harness.ROOT / "tests/exports/tensor_map"


class TensorMaps(harness.Case):
    def judged(self, change=None, code=0):
        """The verdict on the program, with one text of its source replaced by another."""
        folder = self.folder / "program"
        shutil.copytree(PROGRAM, folder)
        source = (folder / "kernel.cu").read_text()
        for old, new in [change] if change else []:
            self.assertIn(old, source)
            source = source.replace(old, new)
        (folder / "kernel.cu").write_text(source)
        result = self.cutegen("eval", folder / "task.py", folder, "--device", "sim:h200", "--json", timeout=300)
        self.assert_code(result, code)
        return result.json()["verdicts"][0]["verdict"]

    def test_a_matrix_comes_through_its_tensor_map(self):
        verdict = self.judged()
        self.assertEqual(verdict["status"], "correct")

    def test_a_read_before_the_mbarrier_is_found(self):
        verdict = self.judged(("while (!done)", "if (false)"), 3)
        self.assertNotEqual(verdict["status"], "correct")
        self.assertIn("async_copy_pending", str(verdict))

    def test_too_few_expected_bytes_are_found(self):
        verdict = self.judged(('"r"(32 * 64 * 4)', '"r"(32 * 64 * 4 + 16)'), 3)
        self.assertNotEqual(verdict["status"], "correct")
        self.assertIn("deadlock", str(verdict))

    def test_a_box_that_tma_does_not_allow_is_refused_by_name(self):
        verdict = self.judged(("{1, 2, 64, 32, 0", "{1, 2, 64, 320, 0"), 3)
        self.assertIn("box[1] is 320 (1 to 256)", str(verdict))


if __name__ == "__main__":
    harness.main()
