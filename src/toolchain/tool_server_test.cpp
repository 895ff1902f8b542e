// SPDX-License-Identifier: Apache-2.0
// A tool that forks for each input, and tools that do not.
#include "toolchain/tool_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::toolchain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Stands in for nvdisasm: a tool that opens its input with fopen.
ToolCall sed(const std::vector<std::string>& script) {
  ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
  ToolCall call;
  call.argv = {"/bin/sed", "-n"};
  call.argv.insert(call.argv.end(), script.begin(), script.end());
  call.argv.emplace_back(kToolInput);
  call.stdout_is_output = true;
  call.output_bytes = 1 << 20;
  call.timeout = seconds(20);
  return call;
}

TEST(ToolServer, EachInputHasAForkOfOneProcess) {
  ToolServer server(sed({"p"}), {});
  server.start();
  for (int i = 0; i < 4; ++i) {
    const std::string text = "line " + std::to_string(i) + "\n";
    auto run = server.run(Context(), text);
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_TRUE(run->ok) << run->died << run->log;
    EXPECT_EQ(run->output, text);
  }
  EXPECT_EQ(server.served(), 4U);
}

TEST(ToolServer, WhatAForkSaysAndHowItEndsAreItsOwn) {
  ToolServer server(sed({"-e", "w /dev/stderr", "-e", "/bad/q7"}), {});
  for (const char* word : {"bad", "good"}) {
    auto run = server.run(Context(), std::string(word) + "\n");
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_THAT(run->log, HasSubstr(word));
    EXPECT_EQ(run->died, std::string(word) == "bad" ? "exit code 7" : "exit code 0");
  }
  EXPECT_EQ(server.served(), 2U);
}

TEST(ToolServer, AForkStartsNoProcess) {
  ToolServer server(sed({"p;1e echo started"}), {});
  auto run = server.run(Context(), "line\n");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(server.served(), 1U);
  EXPECT_THAT(run->output, Not(HasSubstr("started")));
}

TEST(ToolServer, AToolThatDoesNotStopIsRunAfresh) {
  ToolServer server(sed({"p"}), {.opening = 2, .filler = "filler\n"});
  for (int i = 0; i < 4; ++i) {
    auto run = server.run(Context(), "input\n");
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_EQ(run->output, "input\n");
  }
  EXPECT_EQ(server.served(), 0U);
}

TEST(ToolServer, AnInputThatTakesTooLongEndsAloneAndTheNextIsServed) {
  ToolCall call = sed({"-e", ":a;/slow/ba", "-e", "p"});
  call.timeout = seconds(1);
  ToolServer server(call, {});
  auto run = server.run(Context(), "slow\n");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_TRUE(run->timed_out);
  run = server.run(Context(), "fast\n");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(run->output, "fast\n");
}

TEST(ToolServer, AStoppedContextIsAnError) {
  ToolServer server(sed({"-e", ":a;/slow/ba"}), {});
  auto run = server.run(Context().with_timeout(milliseconds(300)), "slow\n");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind, ErrorKind::timeout);
}

}  // namespace
}  // namespace cutegen::toolchain
