// SPDX-License-Identifier: Apache-2.0
// Who creates the namespaces, and what children leave behind: bubblewrap, cgroups, orphans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sandbox/bubblewrap.h"
#include "sandbox/cgroup.h"
#include "sandbox/testing/test_child.h"

namespace cutegen::sandbox {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

SpawnSpec shell(const std::string& script, Driver driver) {
  SpawnSpec spec{.argv = {"/bin/bash", "-c", script}, .env = {"PATH=/usr/bin:/bin"}};
  spec.isolation = kAll;
  spec.driver = driver;
  return spec;
}

// Both drivers must provide the same view.
class Drivers : public testing::TestWithParam<Driver> {
 protected:
  void SetUp() override {
    if (GetParam() == Driver::bubblewrap && bubblewrap().empty())
      GTEST_SKIP() << "no working bwrap here";
    if (GetParam() == Driver::own && probe().label != Protection::full)
      GTEST_SKIP() << probe().missing;
  }
  SpawnSpec script(const std::string& text) const { return shell(text, GetParam()); }
};

TEST_P(Drivers, TellHowAProgramEnded) {
  EXPECT_EQ(run(script("exit 3")).status.text(), "exit code 3");
  EXPECT_EQ(run(script("kill -SEGV $$")).status.text(), "killed by SIGSEGV");
  EXPECT_GT(run(script("true")).status.max_rss_bytes, 100'000);
}

TEST_P(Drivers, PassOnlyWhatIsListed) {
  auto memory = make_memfd("m", 6);
  ASSERT_EQ(::pwrite(memory->get(), "hello\n", 6, 0), 6);
  SpawnSpec spec = script("cat <&7; echo $A-$HOME; ls /proc/self/fd | tr '\\n' ' '");
  spec.env = {"A=b", "PATH=/usr/bin:/bin"};
  spec.fds = {{memory->get(), 7}};
  EXPECT_EQ(run(spec).text, "hello\nb-\n0 1 2 3 7 ");  // ls opened 3
}

TEST_P(Drivers, FilesAreReadOnlyAndTmpIsPrivate) {
  fs::path dir = "/tmp/cutegen_driver_test";
  fs::create_directories(dir / "seen");
  ASSERT_TRUE(write_file(dir / "seen/f", "visible\n"));
  ASSERT_TRUE(write_file(dir / "hidden", "secret\n"));
  SpawnSpec spec = script("touch /etc/x /tmp/cutegen_driver_test/seen/y; cat " +
                          (dir / "seen/f").string() + " " + (dir / "hidden").string() +
                          "; echo mine > /tmp/y && cat /tmp/y; echo out > /dev/null && echo null");
  spec.readable = {(dir / "seen").string()};
  Outcome o = run(spec);
  fs::remove_all(dir);
  EXPECT_THAT(o.text, HasSubstr("/etc/x': Read-only file system"));
  EXPECT_THAT(o.text, HasSubstr("seen/y': Read-only file system"));
  EXPECT_THAT(o.text, HasSubstr("visible\n"));
  EXPECT_THAT(o.text, Not(HasSubstr("secret")));
  EXPECT_THAT(o.text, HasSubstr("mine\nnull\n"));
  EXPECT_FALSE(fs::exists("/tmp/y"));
}

TEST_P(Drivers, NoNetworkNoRightsNoOtherProcesses) {
  Outcome o = run(
      script("echo > /dev/tcp/127.0.0.1/1; unshare -U true; ls -d /proc/[0-9]* | wc -l; "
             "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; cat /proc/net/dev | wc -l"));
  EXPECT_THAT(o.text, HasSubstr("socket: Operation not permitted"));
  EXPECT_THAT(o.text, HasSubstr("unshare failed: Operation not permitted"));
  EXPECT_THAT(o.text, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(o.text, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(o.text, HasSubstr("Seccomp:\t2"));
  EXPECT_EQ(o.grade.held["namespaces"], true);
  EXPECT_EQ(o.grade.held.contains("bubblewrap"), GetParam() == Driver::bubblewrap);
}

TEST_P(Drivers, KillingEndsTheWholeFamily) {
  auto child = spawn(script("setsid sleep 100 & sleep 100"));
  ASSERT_TRUE(child);
  pid_t pid = child->pid();
  EXPECT_EQ(::kill(pid, 0), 0);
  child->kill();
  EXPECT_TRUE(gone(pid));
  EXPECT_FALSE(child->running());
}

INSTANTIATE_TEST_SUITE_P(Sandbox, Drivers, testing::Values(Driver::own, Driver::bubblewrap),
                         [](const auto& tested) {
                           return tested.param == Driver::own ? "own" : "bubblewrap";
                         });

TEST(Driver, TheEnvironmentChooses) {
  if (bubblewrap().empty()) GTEST_SKIP() << "no working bwrap here";
  ::setenv("CUTEGEN_SANDBOX", "bubblewrap", 1);
  Grade chosen = run(shell("true", Driver::automatic)).grade;
  ::setenv("CUTEGEN_SANDBOX", "own", 1);
  Grade own = run(shell("true", Driver::automatic)).grade;
  ::unsetenv("CUTEGEN_SANDBOX");
  EXPECT_TRUE(chosen.held.contains("bubblewrap"));
  EXPECT_FALSE(own.held.contains("bubblewrap"));
}

TEST(Driver, DeathsBySignalComeBackFromBubblewrap) {
  auto code = [](int c) { return unwrapped({.exited = true, .code = c}).text(); };
  EXPECT_EQ(code(0), "exit code 0");
  EXPECT_EQ(code(128), "exit code 128");
  EXPECT_EQ(code(139), "killed by SIGSEGV");
  EXPECT_EQ(code(193), "exit code 193");
  EXPECT_EQ(unwrapped({.signal = SIGKILL}).text(), "killed by SIGKILL");
}

// Without a pid namespace, kill() also ends processes that the program started in other sessions.
TEST(Orphans, AreEndedWithoutNamespaces) {
  SpawnSpec spec{
      .argv = {"/bin/bash", "-c", "setsid bash -c 'echo $$; exec sleep 100' & sleep 0.3"},
      .env = {"PATH=/usr/bin:/bin"}};
  Outcome o = run(spec);
  pid_t orphan = std::atoi(o.text.c_str());
  ASSERT_GT(orphan, 1) << o.text;
  EXPECT_TRUE(gone(orphan));
}

// A plain folder in the place of a cgroup that is delegated to cutegen.
struct FakeCgroup : testing::Test {
  fs::path base = fs::temp_directory_path() / ("cutegen_cgroup_" + std::to_string(::getpid()));
  void SetUp() override {
    fs::create_directories(base);
    write("cgroup.controllers", "cpu memory pids\n");
    write("cgroup.subtree_control", "memory pids\n");
    ::setenv("CUTEGEN_CGROUP", base.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("CUTEGEN_CGROUP");
    fs::remove_all(base);
  }
  void write(const char* name, const std::string& text) const {
    std::ofstream(base / name) << text;
  }
  fs::path group() const {
    for (const auto& entry : fs::directory_iterator(base))
      if (entry.is_directory()) return entry.path();
    return {};
  }
};

TEST_F(FakeCgroup, TheChildJoinsAGroupWithItsLimits) {
  SpawnSpec spec = shell("true", Driver::own);
  spec.limits.resident_bytes = 1 << 30;
  spec.limits.processes = 77;
  Outcome o = run(spec);
  ASSERT_FALSE(group().empty());
  EXPECT_EQ(*read_file(group() / "memory.max"), "1073741824");
  EXPECT_EQ(*read_file(group() / "pids.max"), "77");
  EXPECT_EQ(*read_file(group() / "cgroup.procs"), "0");  // "0" is the writing process
  EXPECT_EQ(o.grade.held["cgroup"], true);
}

TEST_F(FakeCgroup, IsNotUsedWhereItIsNotOurs) {
  write("cgroup.controllers", "cpu\n");
  EXPECT_FALSE(cgroup_base());
  write("cgroup.controllers", "memory pids\n");
  EXPECT_TRUE(cgroup_base());
  fs::remove_all(base);
  EXPECT_FALSE(cgroup_base());
  SpawnSpec spec = shell("true", Driver::own);
  spec.limits.processes = 77;
  Outcome o = run(spec);  // a missing group is not an error
  EXPECT_FALSE(o.grade.held.contains("cgroup"));
}

TEST(Cgroup, OwnGroupIsReadFromTheKernelsTables) {
  const std::string mounts =
      "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
  EXPECT_EQ(own_cgroup("9:pids:/a\n0::/user.slice/x.scope\n", mounts),
            "/sys/fs/cgroup/unified/user.slice/x.scope");
  EXPECT_FALSE(own_cgroup("9:pids:/a\n", "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"));
  EXPECT_FALSE(own_cgroup("0::/../outside\n", mounts));
}

}  // namespace
}  // namespace cutegen::sandbox
