// SPDX-License-Identifier: Apache-2.0
// Result, Context, text, hashes and units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "base/context.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"

namespace cutegen {
namespace {

using testing::HasSubstr;

Result<int> half(int n) {
  if (n % 2) return user_error("odd", "here", "give an even one");
  return n / 2;
}

Result<int> quarter(int n) {
  CG_TRY(int h, half(n));
  CG_CHECK(half(h));
  return h / 2;
}

TEST(Result, MacrosPassErrorsOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(3).error().text(), "here: error: odd (give an even one)");
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Result, KindsAndExitCodes) {
  EXPECT_EQ(exit_code(user_error("m").value()), kExitUser);
  EXPECT_EQ(exit_code(world_error("m").value()), kExitEnvironment);
  EXPECT_EQ(exit_code(unsupported_error("m").value()), kExitUnsupported);
  EXPECT_EQ(exit_code(Error{ErrorKind::timeout, "m"}), kExitEnvironment);
  EXPECT_EQ(exit_code(Error{ErrorKind::cancelled, "m"}), kExitInterrupted);
  EXPECT_EQ(exit_code(Error{ErrorKind::internal, "m"}), kExitInternal);
  EXPECT_STREQ(to_string(ErrorKind::timeout), "timeout");
  EXPECT_EQ((Error{ErrorKind::internal, "m"}).text(), "internal error: m");
  errno = ENOENT;
  EXPECT_EQ(errno_error("open").value().message, "open: No such file or directory");
}

TEST(Result, AssertionsNameThePlace) {
  EXPECT_DEATH(CG_ASSERT(1 + 1 == 3),
               "base_test.cpp:[0-9]+: internal error: assertion '1 . 1 == 3'");
}

TEST(Context, EndsByStopOrDeadline) {
  EXPECT_TRUE(Context().check("x"));
  std::stop_source stop;
  Context ctx(stop.get_token());
  EXPECT_FALSE(ctx.done());
  Context late = ctx.with_timeout(Nanoseconds(-1));
  EXPECT_EQ(late.check("waiting").error().kind, ErrorKind::timeout);
  EXPECT_EQ(late.check("waiting").error().message, "timed out while waiting");
  EXPECT_EQ(late.remaining(std::chrono::seconds(5)), Nanoseconds(0));
  stop.request_stop();
  EXPECT_EQ(late.check("waiting").error().kind, ErrorKind::cancelled);
  EXPECT_TRUE(ctx.stopped());
}

TEST(Context, DeadlinesOnlyShrink) {
  Context soon = Context().with_timeout(std::chrono::seconds(1));
  Context later = soon.with_timeout(std::chrono::hours(1));
  EXPECT_LE(later.remaining(std::chrono::hours(2)), std::chrono::seconds(1));
  EXPECT_EQ(Context().remaining(std::chrono::seconds(9)), std::chrono::seconds(9));
  EXPECT_EQ(soon.remaining(Nanoseconds(5)), Nanoseconds(5));
}

TEST(Text, SanitizeStripsEscapesAndControls) {
  EXPECT_EQ(sanitize("a\x1b[31mred\x1b[0m b\tc\n", 100), "ared b\tc\n");
  EXPECT_EQ(sanitize("t\x1b]0;title\x07x", 100), "tx");
  EXPECT_EQ(sanitize("t\x1b]0;title\x1b\\x", 100), "tx");
  EXPECT_EQ(sanitize(std::string("a\0\r\x7f\x08z", 6), 100), "az");
  EXPECT_EQ(sanitize("\xc2\x9b"
                     "31m",
                     100),
            "31m");  // the one-character escape of UTF-8
  EXPECT_EQ(sanitize("\x1b[", 100), "");
  EXPECT_EQ(sanitize("\x1b", 100), "");
}

TEST(Text, SanitizeRepairsUtf8AndCuts) {
  EXPECT_EQ(sanitize("gr\xc3\xbc\xc3\x9f", 100), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(sanitize("a\xff\xc3", 100), "a??");
  EXPECT_EQ(sanitize("\xe2\x82\xac\xf0\x9f\x98\x80", 100), "\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(sanitize(std::string(50, 'x'), 10), std::string(10, 'x') + "... [cut]");
  EXPECT_EQ(sanitize(std::string(10, 'x'), 10), std::string(10, 'x'));
}

TEST(Text, Pieces) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_TRUE(starts_with_any("cute/x.h", {"cub/", "cute/"}));
  EXPECT_FALSE(starts_with_any("x", {}));
  EXPECT_EQ(replace_all("aaa", "a", "aa"), "aaaaaa");
}

TEST(Hex, RoundTripsAllBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += char(i);
  EXPECT_EQ(from_hex(to_hex(bytes)), bytes);
  EXPECT_EQ(to_hex("\xff\n"), "ff0a");
  for (const char* bad : {"f", "fg", " f", "-1", "0x", "+1"}) EXPECT_FALSE(from_hex(bad)) << bad;
}

TEST(Hash, KnownValue) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, FieldsAreSeparate) {
  EXPECT_NE(Hasher{}.field("ab").field("c").hex(), Hasher{}.field("a").field("bc").hex());
  EXPECT_EQ(Hasher{}.field("ab").field("c").hex(), Hasher{}.field("ab").field("c").hex());
  EXPECT_NE(Hasher{}.field("").hex(), Hasher{}.hex());
}

TEST(Hash, RandomIdsDiffer) {
  std::string a = random_id();
  EXPECT_THAT(a, testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(a.size(), 32U);
  EXPECT_NE(a, random_id());
}

TEST(Units, HumanForms) {
  EXPECT_EQ(human(Bytes{6'442'450'944}), "6.44 GB");
  EXPECT_EQ(human(Bytes{17}), "17 B");
  EXPECT_EQ(human(Flops{1.61e9}), "1.61 GFLOP");
  EXPECT_EQ(human_ns(950), "950 ns");
  EXPECT_EQ(human_ns(1.27e6), "1.27 ms");
  EXPECT_EQ(human_ns(2.5e9), "2.5 s");
  Bytes b{1000};
  b += Bytes{24};
  EXPECT_EQ(b, Bytes{1024});
  EXPECT_LT(b, b + Bytes{1});
  EXPECT_EQ((b - Bytes{24}) * 2, Bytes{2000});
}

}  // namespace
}  // namespace cutegen
