// SPDX-License-Identifier: Apache-2.0
// Tests the handle with the real process and programs that hang or kill it.
#include "eval/runner/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "base/file.h"

namespace cutegen::eval {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kModule = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry spin()
{
L:
  bra L;
}
.visible .entry sevens(.param .u64 p)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r2, 7;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
constexpr int64_t kBytes = 32 * 4;

// The runner processes below `ancestor`.
std::vector<pid_t> runners_below(pid_t ancestor) {
  std::map<pid_t, std::pair<pid_t, std::string>> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    pid_t pid = std::atoi(entry.path().filename().c_str());
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    if (pid <= 0 || !std::getline(file, stat)) continue;
    size_t open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    pid_t parent = 0;
    std::sscanf(stat.c_str() + close + 1, " %*c %d", &parent);
    all[pid] = {parent, stat.substr(open + 1, close - open - 1)};
  }
  std::vector<pid_t> out;
  for (const auto& [pid, what] : all) {
    if (!what.second.starts_with("cutegen-runner")) continue;
    pid_t up = pid;
    while (up > 1 && up != ancestor) up = all.contains(up) ? all[up].first : 0;
    if (up == ancestor) out.push_back(pid);
  }
  return out;
}

class RunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = make_memfd("buffers", 4096).value();
    runner_.emplace(options());
    auto loaded = runner_->load(Context(), {kModule});
    ASSERT_TRUE(loaded) << loaded.error().text();
    ASSERT_TRUE(loaded->ok) << loaded->error.text();
    ASSERT_EQ(loaded->facts.size(), 1U);
  }

  Result<RunnerOutcome> run(const std::string& kernel, Nanoseconds limit) {
    Launch launch{.step = kernel, .kernel = kernel, .block = {32, 1, 1}};
    if (kernel == "sevens") launch.args = {{.buffer = "out"}};
    RunRequest request{.buffers = {{.name = "out", .bytes = kBytes, .offset = 0}},
                       .memory = memory_.get(),
                       .steps = {launch},
                       .limit = limit};
    request.settings.instruction_budget = uint64_t{1} << 60;
    return runner_->run(Context(), request);
  }

  // The new process loads the modules by itself and uses the caller's memory.
  void expect_it_works() {
    auto good = run("sevens", std::chrono::seconds(60));
    ASSERT_TRUE(good) << good.error().text();
    EXPECT_EQ(good->kind, RunnerOutcome::Kind::reported);
    EXPECT_EQ(good->report.status, device::RunReport::Status::ok) << good->report.message;
    auto map = Mapping::map(memory_.get(), kBytes, false);
    ASSERT_TRUE(map);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(reinterpret_cast<const int*>(map->data())[i], 7);
  }

  virtual RunnerOptions options() const { return {}; }

  std::optional<Runner> runner_;
  UniqueFd memory_;
};

class SpareRunnerTest : public RunnerTest {
  RunnerOptions options() const override { return {.spare = true}; }
};

TEST_F(RunnerTest, AHangIsTheProgramsAndTheNextRunWorks) {
  auto hung = run("spin", milliseconds(1500));
  ASSERT_TRUE(hung) << hung.error().text();
  EXPECT_EQ(hung->kind, RunnerOutcome::Kind::hung);
  EXPECT_EQ(hung->text, "no answer within 1 s");
  EXPECT_TRUE(runners_below(::getpid()).empty());
  expect_it_works();
}

TEST_F(RunnerTest, ADeathIsTheProgramsAndTheNextRunWorks) {
  ASSERT_FALSE(runners_below(::getpid()).empty());
  std::jthread killer([] {
    std::this_thread::sleep_for(milliseconds(300));
    for (pid_t pid : runners_below(::getpid())) ::kill(pid, SIGKILL);
  });
  auto died = run("spin", std::chrono::seconds(60));
  ASSERT_TRUE(died) << died.error().text();
  EXPECT_EQ(died->kind, RunnerOutcome::Kind::died);
  EXPECT_THAT(died->text, HasSubstr("SIGKILL"));
  expect_it_works();
}

// A spare is ready before it is needed, and so is the next one.
TEST_F(SpareRunnerTest, TakesThePlaceOfOneThatHung) {
  for (int i = 0; i < 2; ++i) {
    runner_->settle(Context());
    const std::vector<pid_t> before = runners_below(::getpid());
    ASSERT_EQ(before.size(), 2U);
    auto hung = run("spin", milliseconds(300));
    ASSERT_TRUE(hung) << hung.error().text();
    EXPECT_EQ(hung->kind, RunnerOutcome::Kind::hung);
    expect_it_works();
    runner_->settle(Context());
    const std::vector<pid_t> after = runners_below(::getpid());
    EXPECT_EQ(after.size(), 2U);
    EXPECT_NE(std::find(before.begin(), before.end(), after[0]) == before.end(),
              std::find(before.begin(), before.end(), after[1]) == before.end());
  }
  runner_.reset();
  EXPECT_TRUE(runners_below(::getpid()).empty());
}

TEST_F(SpareRunnerTest, ASpareThatDiedIsNotTaken) {
  runner_->settle(Context());
  for (pid_t pid : runners_below(::getpid())) ::kill(pid, SIGKILL);
  auto loaded =
      runner_->load(Context(), {kModule});  // retries in a new process if the spare is dead
  ASSERT_TRUE(loaded) << loaded.error().text();
  expect_it_works();
}

TEST_F(RunnerTest, ModulesThatAreNoPtxAreTheProgramsFault) {
  auto bad = runner_->load(Context(), {"no PTX at all"});
  ASSERT_TRUE(bad) << bad.error().text();
  EXPECT_FALSE(bad->ok);
  EXPECT_FALSE(bad->died);
  EXPECT_FALSE(bad->error.message.empty());
  auto run_it = run("sevens", std::chrono::seconds(60));
  ASSERT_FALSE(run_it);
  EXPECT_THAT(run_it.error().message, HasSubstr("do not load again"));
}

}  // namespace
}  // namespace cutegen::eval
