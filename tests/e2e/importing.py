# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 serial
"""A run hands out its programs, another device judges them, and the run takes the verdicts in."""
import json
import shutil

import harness

TASK = harness.ROOT / "tasks" / "relu.py"


class Importing(harness.Case):
    def cutegen_ok(self, *arguments, code=0):
        result = self.cutegen(*arguments, "--runs", self.folder / "runs", timeout=300)
        self.assert_code(result, code)
        return result

    def test_there_and_back(self):
        shutil.copy(TASK, self.folder / "mine.py")
        self.cutegen_ok("optimize", "mine.py", "--evaluations", 2, "--out", "best", "--no-profile")
        told = self.cutegen_ok("handout", "last", "proposed").out
        self.assertIn("cutegen import last proposed verdicts", told)
        best = json.loads((self.folder / "best/verdict.json").read_text())
        self.assert_error(self.cutegen("handout", "last", "proposed", "--runs", "runs"), 2, "no empty folder")

        # The other machine: another GPU of the same architecture, so that builds are the same.
        judged = self.cutegen("eval", "proposed/mine.py", "--batch", "proposed", "--out", "verdicts",
                              "--device", "sim:h100", timeout=300)  # fmt: skip
        self.assert_code(judged, 0)
        shutil.copy(self.folder / "verdicts/c1.json", self.folder / "verdicts/stranger.json")

        result = self.cutegen_ok("import", "last", "proposed", "verdicts", "--json", code=2)
        document = result.json()
        self.assertEqual(document["schema"], "cutegen.import.v1")
        rows = {row["entry"]: row for row in document["entries"]}
        self.assertEqual(rows["stranger"]["status"], "refused")
        self.assertIn("another name", rows["stranger"]["detail"])
        imported = [row for row in document["entries"] if row["candidate"]]
        self.assertIn("the best program itself", imported[0]["detail"])
        self.assertTrue(imported[0]["best"])

        verdict = json.loads((self.folder / "best/verdict.json").read_text())
        self.assertEqual((verdict["device"], verdict["timing"]["origin"]), ("sim:h100", "imported"))
        self.assertEqual(best["timing"]["origin"], "modelled")
        shown = self.cutegen_ok("show", "last", "--json").json()
        self.assertEqual(shown["best"]["imported"]["device"], "sim:h100")
        self.assertEqual(shown["state"], "finished")
        self.assertNotIn("best_gain", shown, "figures of two devices are not compared")
        self.assertIn("its figures are imported: modelled on sim:h100", self.cutegen_ok("show", "last").out)
        self.cutegen_ok("report", "last", "-o", "page.html")
        self.assertIn("<h2>Imported</h2>", (self.folder / "page.html").read_text())

        (self.folder / "verdicts/stranger.json").unlink()
        again = self.cutegen_ok("import", "last", "proposed", "verdicts").out
        self.assertIn(f"0 of {len(imported)} entries imported", again)
        self.assertEqual(len(self.cutegen_ok("show", "last", "--json").json()["steps"]), len(shown["steps"]))
        self.cutegen_ok("optimize", "--replay", "last")

    def test_bad_words(self):
        for arguments in (("import", "last", "a", "b"), ("handout", "last", "a")):
            self.assert_error(self.cutegen(*arguments, "--runs", "runs"), 2, "no run")


if __name__ == "__main__":
    harness.main()
