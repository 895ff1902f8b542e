// SPDX-License-Identifier: Apache-2.0
// Hostile PTX: truncated, of a future version, with unknown words, with absurd sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "ptx/machine/machine.h"

namespace cutegen::ptx {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

const std::string kHostileHead = ".version 8.0\n.target sm_90\n.address_size 64\n";

std::string hostile_kernel(const std::string& body) {
  return kHostileHead + ".visible .entry f(.param .u64 f_x)\n{\n" + body + "\n  ret;\n}\n";
}

Error error_of(const std::string& text) {
  auto module = Module::parse(text);
  return module ? Error{.kind = ErrorKind::internal, .message = "parsed"} : module.error();
}

// Every error says what is wrong, and where.
void expect_error(const std::string& text, ErrorKind kind, const std::string& what, int line) {
  Error e = error_of(text);
  EXPECT_EQ(e.kind, kind) << text << e.text();
  EXPECT_THAT(e.message, HasSubstr(what)) << text;
  EXPECT_EQ(e.where, "ptx:" + std::to_string(line)) << text << e.text();
}

TEST(Hostile, AModuleCutOffAnywhereIsAnErrorWithALine) {
  auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/reduce.ptx");
  ASSERT_TRUE(text);
  size_t end = text->find_last_of('}');
  int errors = 0;
  for (size_t cut = 0; cut < end; cut += 7) {
    auto module = Module::parse(std::string_view(*text).substr(0, cut));
    if (module) continue;  // a text cut between two declarations is valid
    ++errors;
    EXPECT_THAT(module.error().where, MatchesRegex("ptx:[0-9]+")) << cut << module.error().text();
    EXPECT_FALSE(module.error().message.empty());
  }
  EXPECT_GT(errors, 50);
}

TEST(Hostile, AnEmptyOrForeignTextIsAnError) {
  expect_error("", ErrorKind::user, "expected '.version', found the end of the text", 1);
  expect_error("\n\nhello", ErrorKind::user, "expected '.version', found 'hello'", 3);
  expect_error(std::string("\0\0\0", 3), ErrorKind::user, "expected '.version'", 1);
  expect_error(
      "\x7f"
      "ELF\x02\x01",
      ErrorKind::user, "expected '.version'", 1);
}

TEST(Hostile, NewerVersionsAreUnsupported) {
  expect_error(".version 10.0\n.target sm_90\n.address_size 64\n", ErrorKind::unsupported,
               "PTX version 10.0", 1);
  expect_error("\n.version 99999999999999999999.1\n", ErrorKind::unsupported, "PTX version 999", 2);
  expect_error(".version\n", ErrorKind::user, "expected a version", 2);
  EXPECT_TRUE(Module::parse(".version 9.3\n.target sm_90\n.address_size 64\n"));
}

TEST(Hostile, UnknownDirectivesAreUnsupportedByName) {
  expect_error(kHostileHead + ".blueprint 3;\n", ErrorKind::unsupported, "PTX directive .blueprint",
               4);
  expect_error(hostile_kernel("  .secret %r1;"), ErrorKind::unsupported, ".secret", 6);
  expect_error(kHostileHead + ".visible .entry f()\n.surprise 3\n{ ret; }\n",
               ErrorKind::unsupported, "kernel directive .surprise", 5);
}

TEST(Hostile, AbsurdRegisterCountsAreRefused) {
  expect_error(hostile_kernel("  .reg .b32 %r<99999999999>;"), ErrorKind::unsupported,
               "registers of one name", 6);
  EXPECT_NE(error_of(hostile_kernel("  .reg .b32 %r<2147483648>;")).message, "parsed");
  EXPECT_NE(error_of(hostile_kernel("  .reg .b32 %r<-1>;")).message, "parsed");
  std::string many;
  for (int i = 0; i < 40; ++i) many += "  .reg .b64 %r" + std::to_string(i) + "_<1000000>;\n";
  // Whatever the result, registers that no instruction uses take no memory.
  (void)Module::parse(hostile_kernel(many));
}

TEST(Hostile, AbsurdSizesAreRefused) {
  EXPECT_THAT(error_of(kHostileHead + ".global .align 4 .b8 big[99999999999999];\n").message,
              HasSubstr("larger than 4 GiB"));
  EXPECT_NE(error_of(kHostileHead + ".shared .b8 s[-4];\n").message, "parsed");
}

TEST(Hostile, FilesCannotBeRead) {
  EXPECT_EQ(error_of(kHostileHead + ".include \"/etc/passwd\"\n").kind, ErrorKind::unsupported);
  EXPECT_EQ(error_of(kHostileHead + ".incbin \"/etc/passwd\"\n").kind, ErrorKind::unsupported);
  EXPECT_EQ(error_of(hostile_kernel("  .incbin \"/etc/passwd\";")).kind, ErrorKind::unsupported);
}

TEST(Hostile, DeepNestingEndsWell) {
  EXPECT_NE(error_of(hostile_kernel(std::string(100'000, '{'))).message, "parsed");
  EXPECT_NE(error_of(hostile_kernel("  mov.v4.f32 " + std::string(100'000, '{') + ";")).message,
            "parsed");
  EXPECT_NE(error_of(kHostileHead + ".section .debug " + std::string(100'000, '{')).message,
            "parsed");
}

}  // namespace
}  // namespace cutegen::ptx
