# SPDX-License-Identifier: Apache-2.0
"""tools/check_floors.py, on small trees made for each case."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTS = """
module(low FLOOR 0)
module(mid FLOOR 1 DEPS low)   # comment (with brackets)
module(side FLOOR 1)
module(top FLOOR 2 DEPS low mid
           LIBS Some::lib)
if(NOT SOMETHING)
  program(prog DIR prog DEPS top)
endif()
"""


class CheckFloors(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.write("CMakeLists.txt", LISTS)
        self.write("src/low/a.h", "#pragma once\n#include <vector>\n")
        self.write("src/mid/b.h", '#include "low/a.h"\n')
        self.write("src/side/d.h", "")
        self.write("src/top/c.cpp", '#include "mid/b.h"\n#include "low/a.h"\n')
        self.write("apps/prog/main.cpp", '#include "low/a.h"\n#include "prog/own.h"\n')
        self.write("apps/prog/own.h", "")

    def tearDown(self) -> None:
        self.folder.cleanup()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self) -> tuple[int, str]:
        result = subprocess.run([sys.executable, "-B", ROOT / "tools/check_floors.py", self.root],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        return result.returncode, result.stdout

    def refused(self, *parts: str) -> None:
        code, out = self.check()
        self.assertEqual(code, 1, out)
        for part in parts:
            self.assertIn(part, out)

    def test_a_clean_tree_passes(self) -> None:
        code, out = self.check()
        self.assertEqual(code, 0, out)
        self.assertIn("6 files, 4 modules, 0 sub-modules, 0 problem(s)", out)

    def test_an_upward_include_is_named_with_its_line(self) -> None:
        self.write("src/low/a.h", '#pragma once\n\n#include "mid/b.h"\n')
        self.refused("src/low/a.h:3: error: low (floor 0) must not include mid (floor 1)")

    def test_a_neighbour_on_the_same_floor_is_refused(self) -> None:
        self.write("src/mid/b.h", '#include "side/d.h"\n')
        self.refused("mid (floor 1) must not include side (floor 1)")

    def test_an_undeclared_dependency_is_refused(self) -> None:
        self.write("src/top/c.cpp", '#include "side/d.h"\n')
        self.refused("top does not declare side: add it to its DEPS")

    def test_an_upward_declaration_is_refused(self) -> None:
        self.write("CMakeLists.txt", LISTS.replace("module(low FLOOR 0)", "module(low FLOOR 0 DEPS top)"))
        self.refused("low (floor 0) depends on top (floor 2)")

    def test_an_unknown_dependency_is_refused(self) -> None:
        self.write("CMakeLists.txt", LISTS.replace("DEPS low mid", "DEPS low middle"))
        self.refused("top depends on 'middle', which is no module")

    def test_a_program_reaches_what_its_modules_depend_on_and_no_more(self) -> None:
        self.write("apps/prog/main.cpp", '#include "mid/b.h"\n#include "side/d.h"\n')
        self.refused("apps/prog/main.cpp:2: error: prog does not depend on side")

    def test_a_module_must_not_include_a_program(self) -> None:
        self.write("src/top/c.cpp", '#include "prog/own.h"\n')
        self.refused("belongs to a program")

    def test_internal_headers_are_private(self) -> None:
        self.write("src/low/internal/x.h", "")
        self.write("src/low/a.cpp", '#include "low/internal/x.h"\n')
        self.assertEqual(self.check()[0], 0)
        self.write("src/mid/b.cpp", '#include "low/internal/x.h"\n')
        self.refused("src/mid/b.cpp:1:", "internal to low")

    def test_an_include_cycle_is_named(self) -> None:
        self.write("src/low/a.h", '#include "low/b.h"\n')
        self.write("src/low/b.h", '#include "low/c.h"\n')
        self.write("src/low/c.h", '#include "low/a.h"\n')
        self.refused("include each other: src/low/a.h, src/low/b.h, src/low/c.h")

    def test_an_include_in_a_comment_does_not_count(self) -> None:
        self.write("src/low/a.h", '// #include "top/c.h"\n/*\n#include "mid/b.h"\n*/\n')
        self.assertEqual(self.check()[0], 0)

    def test_a_misspelt_include_is_named(self) -> None:
        self.write("src/low/a.h", '#include "low/nothing.h"\n')
        self.refused('"low/nothing.h" is no file')

    def test_a_folder_without_a_module_is_named(self) -> None:
        self.write("src/stray/a.h", "")
        self.refused("src/stray/a.h:1: error: its folder is no module")


class SubModules(CheckFloors):
    """The same rules inside a module."""

    def setUp(self) -> None:
        super().setUp()
        self.write("CMakeLists.txt", LISTS + "module(big/inner FLOOR 1 DEPS low)\n"
                   "module(big/outer FLOOR 2 DEPS low big/inner)\nmodule_group(big DEPS mid)\n")
        self.write("src/big/inner/i.h", '#include "low/a.h"\n')
        self.write("src/big/outer/o.h", '#include "big/inner/i.h"\n')

    def test_a_clean_tree_passes(self) -> None:
        code, out = self.check()
        self.assertEqual(code, 0, out)
        self.assertIn("8 files, 4 modules, 2 sub-modules, 0 problem(s)", out)

    def test_an_upward_include_inside_a_module_is_named(self) -> None:
        self.write("src/big/inner/i.h", '\n#include "big/outer/o.h"\n')
        self.refused("src/big/inner/i.h:2: error: big/inner (floor 1) must not include big/outer (floor 2)")

    def test_tests_and_fixtures_may_include_all_of_their_module_and_its_dependencies(self) -> None:
        self.write("src/big/inner/i_test.cpp", '#include "big/outer/o.h"\n#include "big/testing/t.h"\n')
        self.write("src/big/testing/t.h", '#include "mid/b.h"\n')
        self.write("CMakeLists.txt", (self.root / "CMakeLists.txt").read_text(encoding="utf-8")
                   + "module(big/testing FLOOR 3 DEPS low)\n")
        self.assertEqual(self.check()[0], 0, self.check()[1])

    def test_a_fixture_is_for_tests_only(self) -> None:
        self.write("src/low/testing/t.h", "")
        self.write("src/low/a_test.cpp", '#include "low/testing/t.h"\n')
        self.assertEqual(self.check()[0], 0, self.check()[1])
        self.write("src/low/a.h", '#pragma once\n#include "low/testing/t.h"\n')
        self.refused('src/low/a.h:2: error: "low/testing/t.h" is a fixture: only tests include it')

    def test_a_test_may_not_include_what_its_module_does_not_depend_on(self) -> None:
        self.write("src/big/inner/i_test.cpp", '#include "top/c.h"\n')
        self.write("src/top/c.h", "")
        self.refused("big does not depend on top")

    def test_a_large_sub_module_is_named(self) -> None:
        for i in range(32):
            self.write(f"src/big/inner/f{i}.h", "")
        self.refused("src/big/inner:1: error: has 33 files")


class Configure(unittest.TestCase):
    """cmake/module.cmake refuses an upward dependency or include when the build is configured."""

    def configure(self, lines: str, *modules: str, text: str = "") -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            for module in modules:
                Path(folder, "src", module).mkdir(parents=True)
                Path(folder, "src", module, "a.cpp").touch()
            if modules:
                Path(folder, "src", modules[0], "a.cpp").write_text(text, encoding="utf-8")
            lists = ("cmake_minimum_required(VERSION 3.25)\nproject(t CXX)\n"
                    f"include({ROOT}/cmake/module.cmake)\n{lines}")
            Path(folder, "CMakeLists.txt").write_text(lists, encoding="utf-8")
            command = [os.environ.get("CUTEGEN_CMAKE", "cmake"), "-S", folder, "-B", f"{folder}/build",
                       "-DBUILD_TESTING=OFF"]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_downward_configures(self) -> None:
        result = self.configure("module(low FLOOR 0)\nmodule(high FLOOR 1 DEPS low)\n", "low", "high")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_upward_fails(self) -> None:
        result = self.configure("module(high FLOOR 1)\nmodule(low FLOOR 0 DEPS high)\n", "low", "high")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("must not depend on high", " ".join(result.stderr.split()))

    def test_an_upward_include_fails(self) -> None:
        lines = "module(low FLOOR 0)\nmodule(high FLOOR 1 DEPS low)\ncheck_includes()\n"
        self.assertEqual(self.configure(lines, "low", "high").returncode, 0)
        result = self.configure(lines, "low", "high", text='#include "high/a.cpp"\n')
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("low (floor 0) must not include high (floor 1)", " ".join(result.stderr.split()))

    def test_same_floor_fails(self) -> None:
        result = self.configure("module(a FLOOR 1)\nmodule(b FLOOR 1 DEPS a)\n", "a", "b")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("must not depend on a", " ".join(result.stderr.split()))

    def test_a_module_without_sources_fails(self) -> None:
        result = self.configure("module(a FLOOR 1)\n")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("no sources", result.stderr)

    def test_upward_inside_a_module_fails(self) -> None:
        result = self.configure("module(m/b FLOOR 1)\nmodule(m/a FLOOR 0 DEPS m/b)\n", "m/a", "m/b")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("must not depend on m/b", " ".join(result.stderr.split()))


if __name__ == "__main__":
    unittest.main()
