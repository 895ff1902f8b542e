// SPDX-License-Identifier: Apache-2.0
// Each message's text is fixed, because programs of two builds may meet after an update.
#include "device/messages.h"

#include <gtest/gtest.h>

namespace cutegen::device {
namespace {

// Checks the text of a message, and that it reads back.
template <class Message>
Message same(const Message& message, const std::string& text) {
  const Json json = to_json(message);
  EXPECT_EQ(dump_json(json), text);
  auto back = read_json<Message>(json);
  EXPECT_TRUE(back) << back.error().text();
  if (!back) return {};
  EXPECT_EQ(dump_json(to_json(*back)), text);
  return std::move(*back);
}

constexpr const char* kHead = R"({"schema":"cutegen.runner.v1",)";

TEST(RunnerMessages, HaveTheTextsOfTheProtocol) {
  auto with = [](const std::string& rest) { return kHead + rest; };
  same(OpenCall{.device = "sim:h200"}, with(R"("type":"open","device":"sim:h200"})"));
  same(OpenCall{.device = "cuda:1", .profiled = true},
       with(R"("type":"open","device":"cuda:1","profiled":true})"));
  same(LoadCall{.bytes = {7, 9}, .code_bytes = {3}},
       with(R"("type":"load","bytes":[7,9],"code_bytes":[3]})"));
  same(Loaded{}, with(R"("type":"loaded","facts":[]})"));
  same(ShareCall{.first = true}, with(R"("type":"share","first":true,"buffers":[]})"));
  same(Shared{}, with(R"("type":"shared"})"));
  same(ReadCall{.probes = {{.buffer = "y", .offset = 4, .bytes = 8, .at = 16}}},
       with(R"("type":"read","probes":[{"buffer":"y","offset":4,"bytes":8,"at":16}]})"));
  same(HasRead{}, with(R"("type":"read"})"));
  same(ReleaseCall{}, with(R"("type":"release"})"));
  same(Released{}, with(R"("type":"released"})"));
}

TEST(RunnerMessages, KeepTheOrderOfTheirFields) {
  auto keys = [](const Json& message) {
    std::string out;
    for (const auto& [key, value] : message.items()) out += key + " ";
    return out;
  };
  EXPECT_EQ(keys(to_json(Opened{})), "schema locked missing type facts identity ");
  EXPECT_EQ(keys(to_json(RunCall{})), "schema type buffers plan settings ");
  EXPECT_EQ(keys(to_json(RunCall{.keep = true})), "schema type buffers plan settings keep ");
  EXPECT_EQ(keys(to_json(TimeCall{})), "schema type request ");
  EXPECT_EQ(to_json(Ran{}).at("type"), "ran");
  EXPECT_EQ(to_json(Ran{.type = ReportType::timed}).at("type"), "timed");
}

TEST(RunnerMessages, OfAnotherProtocolAreRefused) {
  EXPECT_EQ(*call_type(to_json(ReleaseCall{})), CallType::release);
  for (Json bad : {Json{{"schema", "cutegen.runner.v2"}, {"type", "load"}},
                   Json{{"schema", "cutegen.runner.v1"}}, Json{{"type", "load"}},
                   Json{{"schema", "cutegen.runner.v1"}, {"type", "sing"}}}) {
    auto type = call_type(bad);
    ASSERT_FALSE(type) << bad;
    EXPECT_EQ(type.error().kind, ErrorKind::world);
  }
  EXPECT_FALSE(read_json<Loaded>(to_json(Shared{}))) << "another type";
  EXPECT_FALSE(read_json<Ran>(to_json(Released{})));
  Json large = to_json(LoadCall{.bytes = {uint64_t{257} << 20}});
  EXPECT_FALSE(read_json<LoadCall>(large));
  large["bytes"][0] = -1;
  EXPECT_FALSE(read_json<LoadCall>(large));
}

}  // namespace
}  // namespace cutegen::device
