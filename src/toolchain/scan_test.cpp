// SPDX-License-Identifier: Apache-2.0
#include "toolchain/scan.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace cutegen::toolchain {
namespace {

std::string problem(CompileRequest request) {
  return scan_source(request, {}).problem;
}
std::string problem_of(std::string source) {
  return problem({.name = "kernel.cu", .source = std::move(source), .arch = "sm_80"});
}

TEST(Scan, FindsIncludesOutsideCommentsAndStrings) {
  auto lines = include_lines(
      "#include <cute/tensor.hpp>\n"
      "  #  include \"cutegen/vec.cuh\" // why\n"
      "// #include \"/a\"\n"
      "/* \n#include \"/b\"\n*/ #include <c>\n"
      "const char* s = \"\\\"/* #include <d>\";\n"
      "#embed \"e\"\n#include MACRO\n#include <unfinished\n#included <f>\n");
  std::vector<std::pair<int, std::string>> got;
  for (const auto& l : lines) got.emplace_back(l.line, l.path);
  std::vector<std::pair<int, std::string>> want = {
      {1, "cute/tensor.hpp"}, {2, "cutegen/vec.cuh"}, {6, "c"}, {8, "e"}};
  EXPECT_EQ(got, want);
}

TEST(Scan, CommentsKeepTheirLineEnds) {
  EXPECT_EQ(without_comments("a/*x\ny*/b//c\nd"), "a   \n   b   \nd");
  EXPECT_EQ(without_comments("/* never closed"), "               ");
  EXPECT_EQ(without_comments("'\"' // x"), "'\"'     ");
  EXPECT_EQ(without_comments("\"unfinished\\"), "\"unfinished\\");
}

TEST(Scan, TellsWhichPrefixASourceNeeds) {
  namespace fs = std::filesystem;
  fs::path dir = fs::temp_directory_path() / "cutegen_scan_test";
  fs::create_directories(dir / "cutegen");
  ASSERT_TRUE(write_file(dir / "cutegen/deep.cuh", "#include <cutegen/deeper.cuh>\n"));
  ASSERT_TRUE(write_file(dir / "cutegen/deeper.cuh",
                         "#include <cutegen/deep.cuh>\n#include <cute/layout.hpp>"));
  ASSERT_TRUE(write_file(dir / "cutegen/plain.cuh", "#include <cuda_fp16.h>\n"));
  auto cute = [&](const char* text) {
    return scan_source({.name = "k.cu", .source = text, .arch = "sm_80"}, {dir}).cute;
  };
  EXPECT_EQ(cute("#include <cute/tensor.hpp>"), CuteUse::all);
  EXPECT_EQ(cute("#include \"cutlass/arch/barrier.h\""), CuteUse::all);
  EXPECT_EQ(cute("#include <cute/tensor_impl.hpp>\n#include <cute/atom/mma_atom.hpp>"),
            CuteUse::all);
  EXPECT_EQ(cute("#include <cute/tensor_impl.hpp>"), CuteUse::tensors);
  EXPECT_EQ(cute("#include <cutegen/deep.cuh>"), CuteUse::tensors);
  EXPECT_EQ(cute("#include <cutegen/plain.cuh>"), CuteUse::none);
  EXPECT_EQ(cute("#include <cutegen/missing.cuh>"), CuteUse::none);
  EXPECT_EQ(cute("// #include <cute/tensor.hpp>"), CuteUse::none);
  fs::remove_all(dir);
}

TEST(Scan, NamesWhatIsWrongAtSight) {
  EXPECT_EQ(problem_of("__device__ int a;"), "");
  EXPECT_EQ(problem_of("\n#include \"/etc/passwd\"").substr(0, 57),
            "kernel.cu:2: error: #include of \"/etc/passwd\" is not allo");
  EXPECT_NE(problem_of("#include <cute/../../x>"), "");
  EXPECT_NE(problem_of("#embed \"/proc/self/environ\""), "");
  EXPECT_EQ(problem_of(std::string("a\0b", 3)),
            "kernel.cu: error: the source has a zero byte at offset 1");
  EXPECT_EQ(problem_of(std::string(kMostSourceBytes, ' ')), "");
  EXPECT_EQ(problem_of(std::string(kMostSourceBytes + 1, ' ')),
            "kernel.cu: error: the source has 1048577 bytes; the limit is 1048576");
}

TEST(Scan, RefusesNamesAndDefinesThatCouldInjectLines) {
  EXPECT_NE(problem({"k\"\n#x.cu", "", {}, "sm_80"}), "");
  EXPECT_NE(problem({"", "", {}, "sm_80"}), "");
  EXPECT_NE(problem({"k.cu", "", {{"A B", "1"}}, "sm_80"}), "");
  EXPECT_NE(problem({"k.cu", "", {{"1A", "1"}}, "sm_80"}), "");
  EXPECT_NE(problem({"k.cu", "", {{"A", "1\n#include \"/etc/passwd\""}}, "sm_80"}), "");
  EXPECT_NE(problem({"k.cu", "", {{"A", "1\\"}}, "sm_80"}), "");
  EXPECT_EQ(problem({"k.cu", "", {{"A", "(1 + 2)"}}, "sm_80"}), "");
}

TEST(Scan, SourceKeepsItsNameAndLines) {
  EXPECT_EQ(full_source({"k.cu", "int x;", {{"A", "4"}}, "sm_80"}),
            "#define A 4\n#line 1 \"k.cu\"\nint x;\n");
}

}  // namespace
}  // namespace cutegen::toolchain
