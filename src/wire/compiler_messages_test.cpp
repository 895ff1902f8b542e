// SPDX-License-Identifier: Apache-2.0
#include "wire/compiler_messages.h"

#include <gtest/gtest.h>

namespace cutegen::wire {
namespace {

template <class Message>
void same(const Message& message, const std::string& text) {
  const Json json = to_json(message);
  EXPECT_EQ(dump_json(json), text);
  auto back = read_json<Message>(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(dump_json(to_json(*back)), text);
}

constexpr const char* kHead = R"({"schema":"cutegen.compiler.v1",)";

TEST(CompilerMessages, HaveTheTextsOfTheProtocol) {
  auto with = [](const std::string& rest) { return kHead + rest; };
  same(
      CompilerReady{
          .why = kAskedFor, .version = "13.0", .warm_up = Nanoseconds(5), .headers = {"a.h"}},
      with(R"("type":"ready","how":"plain","why":"asked for","version":"13.0","warm_up_ns":5,)"
           R"("headers":["a.h"]})"));
  same(CompileCall{.source = "int x;", .memory_bytes = 64, .timeout_ms = 1500},
       with(R"("type":"compile","source":"int x;","memory_bytes":64,"timeout_ms":1500})"));
  same(CompileReply{.ok = true,
                    .how = CompileMode::warm,
                    .status = "NVRTC_SUCCESS",
                    .ptx = "p",
                    .log = "l",
                    .headers = {"b.h"},
                    .grade = Protection::full,
                    .spent = Nanoseconds(3)},
       R"({"ok":true,"how":"warm","status":"NVRTC_SUCCESS","ptx":"p","log":"l","headers":["b.h"],)"
       R"("refused":[],"grade":"full","missing":"","spent_ns":3})");
  same(CompileDied{.died = "SIGSEGV", .timed_out = true}, R"({"died":"SIGSEGV","timed_out":true})");
  same(KeepCall{.parts = {"a", "b"}, .memory_bytes = 64, .timeout_ms = 5},
       with(R"("type":"keep","parts":["a","b"],"memory_bytes":64,"timeout_ms":5})"));
  same(Parked{.part = 2, .spent = Nanoseconds(7)},
       with(R"("type":"parked","part":2,"spent_ns":7})"));
  same(Kept{}, with(R"("type":"kept"})"));
}

TEST(CompilerMessages, OfAnotherKindAreRefused) {
  EXPECT_TRUE(is_kept(to_json(Kept{})));
  EXPECT_FALSE(is_kept(to_json(Parked{.part = 1})));
  EXPECT_TRUE(is_death(to_json(CompileDied{})));
  EXPECT_FALSE(is_death(to_json(CompileReply{})));
  EXPECT_FALSE(is_death(Json::array()));
  EXPECT_FALSE(read_json<CompileCall>(to_json(Kept{})));
  EXPECT_FALSE(read_json<KeepCall>(to_json(KeepCall{.parts = {"one"}})));
  Json reply = to_json(CompileReply{});
  reply["how"] = "somehow";
  EXPECT_FALSE(read_json<CompileReply>(reply));
  reply.erase("how");
  EXPECT_FALSE(read_json<CompileReply>(reply));
  Json other = to_json(CompilerReady{});
  other["schema"] = "cutegen.compiler.v2";
  EXPECT_FALSE(read_json<CompilerReady>(other));
}

}  // namespace
}  // namespace cutegen::wire
