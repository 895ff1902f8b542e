# SPDX-License-Identifier: Apache-2.0
"""tools/figures.py and tools/check_text.py: lengths, limits, and phrases that text must not contain."""
from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_text  # noqa: E402
import figures  # noqa: E402
import sources  # noqa: E402

CODE = '''// SPDX-License-Identifier: Apache-2.0
namespace n {
struct S {
  int f() const { return 1; }
  int values[2] = {1, 2};
};
template <class T>
int g(T t,
      int n = 3) {
  auto l = [&](int x) {
    return x + '{' + "}" [0];
  };
  if (n) {
    return l(n);
  }
  return 0;  // } not a brace
}
const char* text = R"(int h() {)";
S::S(int a) : x_{a}, y_(a) {}
bool operator==(const S& a, const S& b) {
  return 1'000;
}
}  // namespace n
'''


class Functions(unittest.TestCase):
    def test_functions_are_found_with_their_heads_and_lengths(self) -> None:
        self.assertEqual(figures.functions(CODE), [(4, 1), (7, 11), (19, 1), (20, 3)])

    def lengths(self, files: dict[str, str]) -> dict[str, int]:
        classes = figures.Classes()
        for path, text in files.items():
            classes.add(path, list(figures.blocks(text)))
        return classes.lengths()

    def test_a_class_is_its_definition_and_its_members_elsewhere(self) -> None:
        self.assertEqual(self.lengths({"src/a/a.cpp": CODE}), {"src/a/a.cpp:3 S": 5})
        members = "int S::f() {\n  return 1;\n}\nS::~S() {}\nbool S::operator()(int) {\n}\nint g(int a = S::f()) {}\n"
        self.assertEqual(self.lengths({"src/a/s.h": "class S final : B {\n  int f();\n};\n",
                                       "src/a/t.cpp": members}), {"src/a/s.h:1 S": 3 + 3 + 1 + 2})

    def test_members_belong_to_the_nearest_class_of_their_name(self) -> None:
        one = "namespace {\nstruct S {\n  int f();\n};\nint S::f() {}\n}\n"
        self.assertEqual(self.lengths({"src/a/s.h": "struct S {};\n", "src/a/s.cpp": "void S::g() {\n}\n",
                                       "src/a/t.cpp": one, "src/b/s.h": "struct S {};\n",
                                       "src/b/u.cpp": "template <class T>\nS<T>& S<T>::h() {}\n"}),
                         {"src/a/s.h:1 S": 3, "src/a/t.cpp:2 S": 4, "src/b/s.h:1 S": 3})

    def test_nested_classes_count_twice_and_local_ones_and_enums_not(self) -> None:
        text = ("struct Memory::State {\n  struct Word {\n  };\n  enum class Kind { a };\n};\n"
                "enum class E { a };\nint f() {\n  struct L {};\n}\nclass [[nodiscard]] R {};\nclass F;\n")
        self.assertEqual(self.lengths({"a.h": text}), {"a.h:1 State": 5, "a.h:2 Word": 2, "a.h:10 R": 1})

    def test_percentiles(self) -> None:
        self.assertEqual(figures.percentile([5, 1, 9], 50), 5)
        self.assertEqual(figures.percentile(list(range(1, 101)), 99), 99)
        self.assertEqual(figures.percentile([], 50), 0)

    def test_slow_units_come_from_the_last_build(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, ".ninja_log").write_text(
                "# ninja log v5\n0\t20000\t0\ta.cpp.o\tx\n0\t13000\t0\tb.cpp.o\tx\n"
                "0\t2000\t0\ta.cpp.o\tx\n0\t50000\t0\tprogram\tx\n", encoding="utf-8")
            self.assertEqual(figures.slow_units(Path(folder)), [(13.0, "b.cpp.o")])


class Limits(unittest.TestCase):
    def run_on(self, files: dict[str, str]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            result = subprocess.run([sys.executable, "-B", ROOT / "tools/figures.py", folder],
                                    capture_output=True, text=True, check=False)
            return result.returncode, result.stdout

    def test_short_files_pass(self) -> None:
        code, out = self.run_on({"src/a/a.h": "#pragma once\n", "src/a/a.cpp": CODE})
        self.assertEqual(code, 0, out)

    def test_a_file_of_801_lines_fails(self) -> None:
        code, out = self.run_on({"src/a/a_test.cpp": "//\n" * 801})
        self.assertEqual(code, 1)
        self.assertIn("src/a/a_test.cpp:1: error: 801 lines", out)

    def test_long_functions_fail(self) -> None:
        code, out = self.run_on({"src/a/a.cpp": "int f() {\n" + "  g();\n" * 90 + "}\n"})
        self.assertEqual(code, 1)
        self.assertIn("p99 of 92 lines", out)

    def test_long_classes_fail(self) -> None:
        part = "int S::f{0}() {{\n" + "  g();\n" * 68 + "}}\n"
        code, out = self.run_on({"src/a/s.h": "class S {\n" + "  int f();\n" * 58 + "};\n",
                                 "src/a/a.cpp": part.format(1) * 3, "src/a/b.cpp": part.format(2) * 2})
        self.assertEqual(code, 1)
        self.assertIn("long class: src/a/s.h:1 S (410 lines)", out)
        self.assertIn("classes: error: p99 of 410 lines", out)

    def test_long_headers_fail(self) -> None:
        code, out = self.run_on({"src/a/a.h": "//\n" * 101})
        self.assertEqual(code, 1)
        self.assertIn("headers: error: median of 101", out)

    def test_cycles_fail(self) -> None:
        code, out = self.run_on({"src/a/a.h": '#include "a/b.h"\n', "src/a/b.h": '#include "a/a.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn("include cycle: src/a/a.h, src/a/b.h", out)


class Cycles(unittest.TestCase):
    def test_groups(self) -> None:
        edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"f"}}
        self.assertEqual(sorted(sources.cycles(edges)), [["a", "b", "c"], ["f"]])


class Text(unittest.TestCase):
    def faults(self, name: str, text: str) -> list[str]:
        return [fault for _, fault in check_text.check_file(Path(name), text)]

    def test_good_files(self) -> None:
        licence = "// SPDX-License-Identifier: Apache-2.0\n"
        self.assertEqual(self.faults("a.cpp", licence + '#include "x.h"\n'), [])
        self.assertEqual(self.faults("a.md", "Two blanks end a line.  \n/usr/bin/python3 is Debian's\n"), [])

    def test_golden_files_are_kept_as_they_came(self) -> None:
        self.assertEqual(self.faults("tests/golden/x/a.cu", "int x; \t"), [])

    def test_each_fault(self) -> None:
        licence = "# SPDX-License-Identifier: Apache-2.0\n"
        for text, part in ((licence + "p = '/ho" + "me/me/x'\n", "one machine"),
                           (licence + "see https://py" + "pi.org/x\n", "registry"),
                           (licence + "# TO" + "DO: later\n", "leaves work"),
                           (licence + "x = 1 \n", "blanks"), (licence + "\tx\n", "tab"),
                           ("x = 1\n", "lacks"), (licence + "x = 1", "no line break")):
            found = self.faults("a.py", text)
            self.assertEqual(len(found), 1, (text, found))
            self.assertIn(part, found[0])

    def test_hard_phrases_in_comments_and_literals(self) -> None:
        cpp, python = "// SPDX-License-Identifier: Apache-2.0\n", "# SPDX-License-Identifier: Apache-2.0\n"
        told = "is " + "told"
        for name, text in (("a.h", cpp + f"int a;  // what it {told}\n"), ("a.cu", cpp + f"/* x\n {told} */\n"),
                           ("a.cpp", cpp + f'auto s = "the user {told}";\n'), ("a.py", python + f"x = 1  # {told}\n"),
                           ("a.py", python + f'"""Nobody {told}."""\n'), ("a.py", python + f"x = f'{told} {{y}}'\n")):
            found = self.faults(name, text)
            self.assertEqual(len(found), 1, (text, found))
            self.assertIn("hard to read", found[0])
        for name, text in (("a.cpp", cpp + "bool is_" + "told;\n"), ("a.py", python + "x = y is " + "None\n"),
                           ("a.py", python + "x = f'{0 if y is " + "None else y}'\n")):
            self.assertEqual(self.faults(name, text), [], text)

    def test_long_lines_of_python(self) -> None:
        text = "# SPDX-License-Identifier: Apache-2.0\n" + "x" * 121 + "\n"
        self.assertEqual(self.faults("tools/a.py", text), ["is longer than 120 columns"])
        self.assertEqual(self.faults("tools/a.py", text.replace("xx", "x", 1)), [])
        self.assertEqual(self.faults("tools/a.cpp", text), [])


if __name__ == "__main__":
    unittest.main()
