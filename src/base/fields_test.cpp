// SPDX-License-Identifier: Apache-2.0
#include "base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace cutegen {
namespace {

using testing::HasSubstr;

enum class Colour { red, green };

Names<Colour> enum_names(Colour) {
  static constexpr Name<Colour> names[] = {{Colour::red, "red"}, {Colour::green, "green"}};
  return names;
}

struct Part {
  std::string name;
  std::optional<double> weight;
  bool operator==(const Part&) const = default;
};

void fields(Fields& v, Part& x) {
  v("name", x.name);
  v("weight", x.weight);
}

struct All {
  std::string text;
  int small = 0;
  int64_t wide = 0;
  uint64_t seed = 0;
  double ratio = 0;
  bool flag = false;
  Colour colour = Colour::red;
  Nanoseconds took{0};
  std::filesystem::path file;
  std::vector<std::byte> bytes;
  Json raw;
  Part part;
  std::optional<Part> other;
  std::vector<Part> parts;
  std::vector<std::vector<int64_t>> rows;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::map<std::string, double> counters;
  std::vector<std::pair<std::string, int64_t>> ordered;
  std::string gate = "element";
  int runs = 0;
  std::optional<double> time_ns;
  bool operator==(const All&) const = default;
};

void fields(Fields& v, All& x) {
  v.document("all#");
  v.schema("cutegen.all.v1");
  v("text", x.text);
  v("small", x.small);
  v("wide", x.wide);
  v("seed", x.seed);
  v("ratio", x.ratio);
  v("flag", x.flag);
  v("colour", x.colour);
  v("took_ns", x.took);
  v("file", x.file);
  v("bytes", x.bytes);
  v("raw", x.raw);
  v("part", x.part);
  v("other", x.other);
  v("parts", x.parts, field::list(2));
  v("rows", x.rows, field::list(4) + field::at_least(0));
  v("grid", x.grid);
  v("counters", x.counters, field::most_keys(3));
  v("ordered", x.ordered, field::may_lack);
  v("gate", x.gate, field::written_if(x.gate != "element"));
  v("runs", x.runs, field::if_set + field::clamped(0, 100));
  v("time_ns", x.time_ns, field::or_null);
  v.check(x.ratio < 10, "ratio", "the ratio is no share", "divide it");
}

All example() {
  All x;
  x.text = "t", x.small = -7, x.wide = int64_t{1} << 40, x.seed = 9, x.ratio = 0.5, x.flag = true;
  x.colour = Colour::green, x.took = Nanoseconds(12), x.file = "a/b.py",
  x.bytes = {std::byte{255}, std::byte{10}}, x.raw = {{"any", 1}};
  x.part = {.name = "p", .weight = 2}, x.other = Part{.name = "o"};
  x.parts = {{.name = "a"}, {.name = "b", .weight = 1}};
  x.rows = {{1, 2}, {}}, x.grid = {4, 5, 6}, x.counters = {{"l2", 1}},
  x.ordered = {{"z", 1}, {"a", 2}};
  return x;
}

// The error after one value was replaced.
std::string error(const char* pointer, const Json& value) {
  Json json = to_json(example());
  json[Json::json_pointer(pointer)] = value;
  auto read = read_json<All>(json);
  return read ? "no error" : read.error().text();
}

std::string error_without(const char* key) {
  Json json = to_json(example());
  json.erase(key);
  auto read = read_json<All>(json);
  return read ? "no error" : read.error().text();
}

TEST(Fields, AreWrittenInTheirOrder) {
  EXPECT_EQ(
      dump_json(to_json(example())),
      R"({"schema":"cutegen.all.v1","text":"t","small":-7,"wide":1099511627776,"seed":9,)"
      R"("ratio":0.5,"flag":true,"colour":"green","took_ns":12,"file":"a/b.py","bytes":"ff0a",)"
      R"("raw":{"any":1},"part":{"name":"p","weight":2.0},"other":{"name":"o"},)"
      R"("parts":[{"name":"a"},{"name":"b","weight":1.0}],"rows":[[1,2],[]],)"
      R"("grid":[4,5,6],"counters":{"l2":1.0},"ordered":{"z":1,"a":2},"time_ns":null})");
}

TEST(Fields, AreReadBack) {
  auto read = read_json<All>(to_json(example()));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, example());
}

TEST(Fields, RoundTripWithAnyValues) {
  const bool holds = rc::check([] {
    All x = example();
    x.text = *rc::gen::arbitrary<std::string>();
    x.small = *rc::gen::arbitrary<int>();
    x.wide = *rc::gen::arbitrary<int64_t>();
    x.flag = *rc::gen::arbitrary<bool>();
    x.seed = *rc::gen::inRange<uint64_t>(0, INT64_MAX);
    x.rows = *rc::gen::arbitrary<std::vector<std::vector<int64_t>>>();
    x.rows.resize(std::min<size_t>(x.rows.size(), 4));
    for (auto& row : x.rows) {
      row.resize(std::min<size_t>(row.size(), 4));
      for (int64_t& n : row) n &= INT64_MAX;
    }
    x.gate = *rc::gen::element<std::string>("element", "rms", "");
    x.runs = *rc::gen::inRange(0, 100);
    if (*rc::gen::arbitrary<bool>()) x.time_ns = *rc::gen::inRange(0, 1000);
    auto read = read_json<All>(to_json(x));
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == x);
  });
  EXPECT_TRUE(holds);
}

TEST(Fields, OfTheWrongTypeAreNamedWithTheirPlace) {
  EXPECT_EQ(error("/text", 1), "all#/text: error: expected a string, found number");
  EXPECT_EQ(error("/small", 1.5), "all#/small: error: expected an integer, found number");
  EXPECT_EQ(error("/ratio", "x"), "all#/ratio: error: expected a number, found string");
  EXPECT_EQ(error("/flag", 1), "all#/flag: error: expected true or false, found number");
  EXPECT_EQ(error("/took_ns", "1"), "all#/took_ns: error: expected an integer, found string");
  EXPECT_EQ(error("/parts", 1), "all#/parts: error: expected an array, found number");
  EXPECT_EQ(error("/counters", 1), "all#/counters: error: expected an object, found number");
  EXPECT_EQ(error("/part", 1), "all#/part: error: expected an object, found number");
  EXPECT_EQ(error("/bytes", "fg"), "all#/bytes: error: expected bytes as hex");
  EXPECT_EQ(error("/bytes", "f"), "all#/bytes: error: expected bytes as hex");
  EXPECT_EQ(error("/file", 1), "all#/file: error: expected a string, found number");
}

TEST(Fields, InsideOthersHaveTheWholePlace) {
  EXPECT_EQ(error("/parts/1/weight", "x"),
            "all#/parts/1/weight: error: expected a number, found string");
  EXPECT_EQ(error("/rows/0/1", true), "all#/rows/0/1: error: expected an integer, found boolean");
  EXPECT_EQ(error("/counters/l2", "x"), "all#/counters/l2: error: expected a number, found string");
  EXPECT_THAT(error("/other/nam", "x"), HasSubstr("all#/other: error: unknown field 'nam'"));
  EXPECT_THAT(error("/other/nam", "x"), HasSubstr("did you mean 'name'?"));
}

TEST(Fields, ThatAreMissingOrUnknownAreRefused) {
  EXPECT_EQ(error_without("text"), "all#: error: missing field 'text'");
  EXPECT_EQ(error_without("grid"), "all#: error: missing field 'grid'");
  EXPECT_EQ(error_without("time_ns"), "all#: error: missing field 'time_ns'");
  EXPECT_EQ(error("/zzz", 1), "all#: error: unknown field 'zzz' (remove it)");
  EXPECT_EQ(read_json<All>(Json(1)).error().text(), "all#: error: expected an object");
  for (const char* key : {"other", "parts", "rows", "ordered", "gate", "runs"})
    EXPECT_EQ(error_without(key), "no error") << key;
}

TEST(Fields, OutOfBoundsAreRefused) {
  EXPECT_EQ(error("/wide", uint64_t{1} << 63), "all#/wide: error: integer is too large");
  EXPECT_EQ(error("/rows/0/0", -1), "all#/rows/0/0: error: -1 is below 0");
  EXPECT_EQ(error("/parts", Json::array({1, 2, 3})),
            "all#/parts: error: 3 entries; the limit is 2");
  EXPECT_EQ(error("/grid", Json::array({1})), "all#/grid: error: 1 entries, not 3");
  EXPECT_EQ(error("/counters", {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}),
            "all#/counters: error: 4 fields; the limit is 3");
  EXPECT_EQ(error("/ratio", 10), "all#/ratio: error: the ratio is no share (divide it)");
  EXPECT_EQ(error("/schema", "cutegen.all.v2"),
            "all#/schema: error: schema is 'cutegen.all.v2', not 'cutegen.all.v1' (it was written "
            "by another version of cutegen)");
}

TEST(Fields, NumbersFitTheirTypes) {
  Json json = to_json(example());
  json["small"] = int64_t{1} << 40, json["runs"] = 1000, json["seed"] = -1;
  auto read = read_json<All>(json);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->small, INT32_MAX);
  EXPECT_EQ(read->runs, 100);
  EXPECT_EQ(read->seed, UINT64_MAX);
}

TEST(Fields, NamesOfEnumerationsSuggestANearOne) {
  EXPECT_EQ(error("/colour", "gren"),
            "all#/colour: error: unknown colour 'gren' (did you mean 'green'?)");
  EXPECT_EQ(error("/colour", "violet"),
            "all#/colour: error: unknown colour 'violet' (one of red, green)");
  EXPECT_STREQ(to_string(Colour::green), "green");
  EXPECT_EQ(from_name<Colour>("red", "colour").value(), Colour::red);
}

TEST(Fields, TheFirstErrorWins) {
  Json json = to_json(example());
  json["text"] = 1, json["zzz"] = 1;
  json.erase("grid");
  EXPECT_EQ(read_json<All>(json).error().where, "all#/text");
}

struct Holder {
  Part part;
};

Result<Holder> holder_from(const Json& json) {
  if (!json.contains("n")) return user_error("a part needs n");
  return Holder{.part = {.name = json["n"]}};
}

Json to_json(const Holder& holder) {
  return {{"n", holder.part.name}};
}

struct Outer {
  Holder holder;
};

void fields(Fields& v, Outer& x) {
  v.via("holder", x.holder, holder_from);
}

TEST(Fields, WithCodecsOfTheirOwnKeepThem) {
  Outer outer{.holder = {.part = {.name = "p"}}};
  EXPECT_EQ(dump_json(write_json(outer)), R"({"holder":{"n":"p"}})");
  auto read = read_json<Outer>(write_json(outer));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->holder.part.name, "p");
  EXPECT_EQ(read_json<Outer>({{"holder", Json::object()}}, "x#").error().text(),
            "x#/holder: error: a part needs n");
  EXPECT_EQ(read_json<Outer>({{"holder", 1}}, "x#").error().text(),
            "x#/holder: error: expected an object, found number");
}

TEST(Fields, MayBeLaxAndHaveFormsOfTheirOwn) {
  auto form = [](Fields& v, Part& x) {
    v.ignore_unknown();
    v("n", x.name, field::shown(2));
    v.also("length", x.name.size());
  };
  EXPECT_EQ(dump_json(to_json_as(Part{.name = "ab"}, form)), R"({"n":"ab","length":2})");
  auto read = read_json_as<Part>({{"n", "ab"}, {"unknown", 1}}, form, "x#");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->name, "ab");
  auto cut = read_json_as<Part>({{"n", "abc\x1b[1m"}}, form, "x#");
  EXPECT_THAT(cut->name, testing::StartsWith("ab"));
  EXPECT_THAT(cut->name, testing::Not(HasSubstr("\x1b")));
  auto list = read_json_as<std::vector<Part>>(Json::array({{{"n", 1}}}), form, "x#");
  EXPECT_EQ(list.error().where, "x#/0/n");
  EXPECT_EQ(write_json(std::vector<Colour>{Colour::red}), Json::array({"red"}));
}

struct Peer {
  int count = 0;
  Colour colour = Colour::red;
  Colour lamp = Colour::red;
  std::vector<int64_t> ports;
};

void fields(Fields& v, Peer& x) {
  static constexpr Name<Colour> kSome[] = {{Colour::red, "red"}};
  v.document("peer#", ErrorKind::world);
  v("count", x.count, field::between(1, 4));
  v.named("colour", x.colour, kSome);
  v.by_name("lamp", x.lamp, [](const std::string& name) -> Result<Colour> {
    if (name == "stop") return Colour::red;
    return user_error("no lamp is called so");
  });
  v("ports", x.ports, field::may_lack);
}

TEST(Fields, OfAProcessGiveErrorsOfTheEnvironment) {
  auto read = [](int count, const char* colour, const char* lamp) {
    return read_json<Peer>({{"count", count}, {"colour", colour}, {"lamp", lamp}});
  };
  EXPECT_TRUE(read(1, "red", "stop"));
  auto bad = read(5, "red", "stop");
  EXPECT_EQ(bad.error().kind, ErrorKind::world);
  EXPECT_EQ(bad.error().text(), "peer#/count: error: 5 is not from 1 to 4");
  EXPECT_EQ(read(1, "green", "stop").error().where, "peer#/colour");
  EXPECT_EQ(read(1, "red", "up").error().text(), "peer#/lamp: error: no lamp is called so");
}

TEST(Fields, OfAProcessKeepTheKindOfErrorInsideLists) {
  auto bad = read_json<Peer>(
      {{"count", 1}, {"colour", "red"}, {"lamp", "stop"}, {"ports", Json::array({80, "http"})}});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ErrorKind::world);
  EXPECT_EQ(bad.error().text(), "peer#/ports/1: error: expected an integer, found string");
}

}  // namespace
}  // namespace cutegen
