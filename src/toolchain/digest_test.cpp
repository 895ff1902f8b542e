// SPDX-License-Identifier: Apache-2.0
// tests/golden/toolchain holds compiler logs of real mistakes.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "toolchain/toolchain.h"

namespace cutegen::toolchain {
namespace {

namespace fs = std::filesystem;
const fs::path kGolden = fs::path(CUTEGEN_SOURCE_DIR) / "tests/golden/toolchain";

TEST(Digest, RealLogsGiveTheGoldenDigests) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    if (entry.path().extension() != ".log") continue;
    fs::path base = entry.path();
    auto text = [&](const char* extension) {
      return *read_file(base.replace_extension(extension));
    };
    std::string log = text(".log"), source = text(".cu"), golden = text(".txt");
    std::string digest = digest_errors(log, "kernel.cu", source);
    EXPECT_EQ(digest + "\n", golden) << base;
    EXPECT_LE(digest.size(), 1500u);
    ++count;
  }
  EXPECT_GE(count, 9);
}

TEST(Digest, ErrorsWithoutAPlace) {
  EXPECT_EQ(digest_errors("nvrtc: error: invalid value for --gpu-architecture (-arch)", "k.cu", ""),
            "k.cu: error: invalid value for --gpu-architecture (-arch)");
  EXPECT_EQ(digest_errors("", "k.cu", ""), "k.cu: error: the compiler failed without a message");
  EXPECT_EQ(digest_errors("something odd", "k.cu", ""), "k.cu: error: something odd");
}

TEST(Digest, WarningsAreNotTheRootError) {
  std::string log =
      "k.cu(1): warning #177-D: variable \"a\" was declared but never referenced\n  int a;\n      "
      "^\n\n"
      "k.cu(2): error: identifier \"b\" is undefined\n  b = 1;\n  ^\n";
  EXPECT_EQ(digest_errors(log, "k.cu", "int a;\nb = 1;\n"),
            "k.cu:2:1: error: identifier \"b\" is undefined\n    1 | int a;\n    2 | b = 1;\n      "
            "| ^\n    3 |");
}

TEST(Digest, HostileLogsStayShortAndCannotCrash) {
  std::string deep = "k.cu(3): error: no conversion from \"";
  for (int i = 0; i < 5000; ++i) deep += "A<";
  for (const std::string& log :
       {deep, std::string(1 << 20, '('), std::string("k.cu(99999999999999999999): error: x\n"),
        std::string("k.cu(-1): error: x"), "k.cu(3): error: " + std::string(1 << 20, 'x'),
        std::string("k.cu(1): error: \x1b[31m\x01 red\n  ^"),
        std::string("x(1): error: y\n  at line 999999 of k.cu\n  ^"), std::string(100000, '\n')}) {
    std::string digest = digest_errors(log, "k.cu", "one\ntwo\n");
    EXPECT_LE(digest.size(), 1500u);
    EXPECT_FALSE(digest.empty());
    EXPECT_EQ(digest.find('\x1b'), std::string::npos);
  }
}

TEST(Digest, LongTypesAreFolded) {
  std::string type = "int";
  for (int i = 0; i < 60; ++i) type = "cute::tuple<" + type + ", cute::C<1>>";
  std::string digest =
      digest_errors("k.cu(1): error: bad \"" + type + " (aka \"" + type + "\")\"", "k.cu", "x");
  EXPECT_LT(digest.size(), 800u);
  EXPECT_NE(digest.find("<...>"), std::string::npos);
  EXPECT_EQ(digest.find("aka"), std::string::npos);
}

}  // namespace
}  // namespace cutegen::toolchain
