// SPDX-License-Identifier: Apache-2.0
// Tools started ahead: those that stop at the gate, and those that do not.
#include "toolchain/tool_spares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/hash.h"

namespace cutegen::toolchain {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class ToolSparesTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
    dir_ = fs::temp_directory_path() / ("cutegen_spares_test_" + random_id());
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  // Stands in for nvdisasm: a tool that opens its input with fopen.
  static ToolCall copying(const std::string& program = "/bin/sed") {
    ToolCall call;
    call.argv = {program, "-n", "p", kToolInput};
    call.stdout_is_output = true;
    call.output_bytes = 1 << 20;
    call.timeout = seconds(20);
    return call;
  }
  ToolCall script(const std::string& lines) const {
    fs::path path = dir_ / "tool";
    EXPECT_TRUE(write_file(path, "#!/bin/sh\n" + lines + "\n"));
    ::chmod(path.c_str(), 0700);
    ToolCall call = copying(path.string());
    call.readable = {dir_.string()};
    return call;
  }
  static std::string output_of(ToolSpares& spares, const std::string& input) {
    auto run = spares.run(Context(), input);
    EXPECT_TRUE(run) << run.error().text();
    EXPECT_TRUE(run && run->ok) << (run ? run->died + run->log : "");
    return run ? run->output : "";
  }

  fs::path dir_;
};

TEST_F(ToolSparesTest, EachInputHasAProcessThatWaited) {
  ToolSpares spares(copying(), {.opening = 1, .filler = {}}, 1);
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(milliseconds(200));
    const std::string text = "line " + std::to_string(i) + "\n";
    EXPECT_EQ(output_of(spares, text), text);
  }
  EXPECT_GE(spares.served(), 3U);
}

// If a tool opens its input less often than expected, it reads the filler and ends. Its output must
// not be used.
TEST_F(ToolSparesTest, AToolThatDoesNotStopIsRunAfresh) {
  ToolSpares spares(copying(), {.opening = 2, .filler = "filler\n"}, 1);
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(output_of(spares, "input\n"), "input\n");
  }
  EXPECT_EQ(spares.served(), 0U);
}

TEST_F(ToolSparesTest, AToolThatHangsOrFailsBeforeItsInputIsRunAfresh) {
  ToolSpares failing(script("exit 4"), {}, 2);
  auto run = failing.run(Context(), "x");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(run->died, "exit code 4");
  ToolCall hangs = script("exec sleep 100");
  hangs.timeout = milliseconds(200);
  ToolSpares hanging(hangs, {}, 1);
  std::this_thread::sleep_for(milliseconds(100));
  run = hanging.run(Context(), "x");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_TRUE(run->timed_out);
  EXPECT_EQ(hanging.served(), 0U);
}

TEST_F(ToolSparesTest, AStoppedContextIsAnError) {
  ToolSpares spares(script("exec sleep 100"), {}, 1);
  auto run = spares.run(Context().with_timeout(milliseconds(100)), "x");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind, ErrorKind::timeout);
}

}  // namespace
}  // namespace cutegen::toolchain
