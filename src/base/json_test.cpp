// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "base/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

using testing::HasSubstr;

TEST(ParseJson, KeepsFieldOrder) {
  EXPECT_EQ(dump_json(parse_json(R"({"b": 1, "a": 2})", "x").value()), R"({"b":1,"a":2})");
}

TEST(ParseJson, ErrorsNameLineAndColumn) {
  auto r = parse_json("{\n  \"a\": tru\n}", "x.json");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::user);
  EXPECT_THAT(r.error().where, HasSubstr("x.json:2:"));
  EXPECT_THAT(parse_json("", "x").error().where, "x:1:1");
}

TEST(ParseJson, IsBounded) {
  EXPECT_THAT(parse_json(std::string(1000, ' '), "x", 10).error().text(), HasSubstr("limit of 10"));
  EXPECT_THAT(parse_json(std::string(100'000, '['), "x").error().text(), HasSubstr("too deeply"));
  std::string ok = std::string(150, '[') + std::string(150, ']');
  EXPECT_TRUE(parse_json(ok, "x"));
  EXPECT_TRUE(parse_json("\"" + std::string(1000, '[') + "\\\"[\"", "x"));
}

TEST(ParseJson, NumbersBeyondDoubleAreErrors) {
  EXPECT_THAT(parse_json("[1e999]", "x").error().text(), HasSubstr("not valid JSON"));
  EXPECT_TRUE(parse_json("[123456789012345678901234567890]", "x"));
}

TEST(ParseJson, InvalidUtf8IsAnError) {
  EXPECT_FALSE(parse_json("[\"\xff\"]", "x"));
}

TEST(CanonicalJson, SortsKeysAtEveryLevel) {
  Json a = parse_json(R"({"b": {"z": 1, "y": [ {"q":1,"p":2} ]}, "a": 0.5})", "x").value();
  EXPECT_EQ(canonical_json(a), R"({"a":0.5,"b":{"y":[{"p":2,"q":1}],"z":1}})");
}

TEST(CanonicalJson, RepairsInvalidUtf8) {
  EXPECT_EQ(canonical_json(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(dump_json(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

class Reader : public testing::Test {
 protected:
  Json json_ = parse_json(R"({"s": "t", "i": 7, "d": 0.5, "b": true, "o": {}, "a": ["x", 1],
                              "l": ["p", "q"], "big": 18446744073709551615})",
                          "x")
                   .value();
  ObjectReader r_{json_, "f#"};
};

TEST_F(Reader, ReadsTypedFields) {
  EXPECT_EQ(r_.string("s").value(), "t");
  EXPECT_EQ(r_.integer("i").value(), 7);
  EXPECT_EQ(r_.number("i").value(), 7.0);
  EXPECT_EQ(r_.number("d").value(), 0.5);
  EXPECT_TRUE(r_.boolean("b").value());
  EXPECT_TRUE(r_.object("o").value().empty());
  EXPECT_EQ(r_.array("a").value().size(), 2U);
  EXPECT_EQ(r_.strings("l").value(), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(r_.any("d").value(), Json(0.5));
}

TEST_F(Reader, ErrorsNameThePlace) {
  EXPECT_EQ(r_.integer("s").error().text(), "f#/s: error: expected an integer, found string");
  EXPECT_THAT(r_.integer("d").error().text(), HasSubstr("expected an integer"));
  EXPECT_THAT(r_.integer("big").error().text(), HasSubstr("too large"));
  EXPECT_EQ(r_.strings("a").error().where, "f#/a/1");
  EXPECT_THAT(r_.string("none").error().text(), HasSubstr("missing field 'none'"));
  EXPECT_FALSE(r_.boolean("i"));
  EXPECT_FALSE(r_.object("a"));
  EXPECT_FALSE(r_.array("o"));
}

TEST_F(Reader, DefaultsAreForAbsentFieldsOnly) {
  EXPECT_EQ(r_.string_or("none", "z").value(), "z");
  EXPECT_EQ(r_.integer_or("i", 1).value(), 7);
  EXPECT_FALSE(r_.integer_or("s", 1));
  EXPECT_TRUE(r_.object_or_null("none").value().is_null());
  EXPECT_TRUE(r_.array_or_empty("none").value().empty());
  EXPECT_TRUE(r_.boolean_or("none", true).value());
  EXPECT_EQ(r_.number_or("none", 2.5).value(), 2.5);
}

TEST(ObjectReader, FinishRefusesWhatNobodyRead) {
  Json json{{"grid", 1}, {"blok", 2}};
  ObjectReader r(json, "f#");
  (void)r.integer("grid");
  (void)r.integer_or("block", 0);
  EXPECT_EQ(r.finish().error().text(), "f#: error: unknown field 'blok' (did you mean 'block'?)");
  Json list = Json::array();
  EXPECT_FALSE(ObjectReader(list, "f#").finish());
}

TEST(Nearest, OnlyTypingErrors) {
  std::vector<std::string> options{"tensor", "map", "i32"};
  EXPECT_EQ(nearest("tensr", options), "tensor");
  EXPECT_EQ(nearest("mpa", options), std::nullopt);
  EXPECT_EQ(nearest("i31", options), "i32");
  EXPECT_EQ(nearest("completely", options), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

TEST(Utf8, IsWhatJsonCanCarry) {
  EXPECT_TRUE(is_utf8_text(""));
  EXPECT_TRUE(is_utf8_text("caf\xc3\xa9\n"));
  EXPECT_FALSE(is_utf8_text("caf\xe9"));
  EXPECT_FALSE(is_utf8_text(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace cutegen
