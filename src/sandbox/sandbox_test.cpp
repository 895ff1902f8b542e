// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "sandbox/testing/test_child.h"

namespace cutegen::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Context kSoon = Context().with_timeout(seconds(20));

SpawnSpec shell(const std::string& script, Isolation isolation = {}) {
  SpawnSpec spec{.argv = {"/bin/bash", "-c", script}, .env = {"PATH=/usr/bin:/bin"}};
  spec.isolation = isolation;
  return spec;
}

TEST(Spawn, ReportsExitCodesAndSignals) {
  EXPECT_EQ(run(shell("exit 3")).status.text(), "exit code 3");
  EXPECT_EQ(run(shell("kill -SEGV $$")).status.text(), "killed by SIGSEGV");
  EXPECT_EQ(run(shell("exit 3", kAll)).status.text(), "exit code 3");
  EXPECT_EQ(run(shell("kill -ABRT $$", kAll)).status.text(), "killed by SIGABRT");
  EXPECT_GT(run(shell("true")).status.max_rss_bytes, 100'000);
}

TEST(Spawn, TheEmptyNetworksLoopbackCanBeRaised) {
  const std::string script = "exec 3<>/dev/tcp/127.0.0.1/9";
  Outcome down = run(shell(script, {.namespaces = true, .no_network = true}));
  if (!down.grade.held["namespaces"]) GTEST_SKIP() << down.grade.missing;
  if (!down.grade.held["bubblewrap"]) {  // bubblewrap always enables the loopback
    EXPECT_NE(down.text.find("unreachable"), std::string::npos) << down.text;
  }
  Outcome up = run(shell(script, {.namespaces = true, .no_network = true, .loopback = true}));
  EXPECT_NE(up.text.find("refused"), std::string::npos) << up.text;
}

TEST(Spawn, KeptCapabilitiesAreInTheGrade) {
  Outcome kept = run(
      shell("grep CapEff /proc/self/status",
            {.namespaces = true, .no_network = true, .loopback = true, .keep_capabilities = true}));
  EXPECT_FALSE(kept.grade.held.at("capabilities"));
  EXPECT_NE(kept.grade.label, Protection::full);
  if (::geteuid() == 0) {
    EXPECT_EQ(kept.text.find("0000000000000000"), std::string::npos) << kept.text;
  }
}

TEST(Spawn, PassesOnlyWhatIsListed) {
  int ours = ::open("/dev/null", O_RDWR);  // not close-on-exec: a plain fork would leak it
  auto memory = make_memfd("m", 6);
  ASSERT_EQ(::pwrite(memory->get(), "hello\n", 6, 0), 6);
  SpawnSpec spec = shell(
      "cat <&7; echo $A-$HOME; ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0", kAll);
  spec.env = {"A=b", "PATH=/usr/bin:/bin"};
  spec.fds = {{memory->get(), 7}};
  std::string text = run(spec).text;
  ::close(ours);
  EXPECT_EQ(text, "hello\nb-\n0 1 2 3 7 /dev/null\n");  // ls opened 3
}

TEST(Spawn, DescriptorsMaySwapNumbers) {
  int a = ::open("/etc/hostname", O_RDONLY | O_CLOEXEC),
      b = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  SpawnSpec spec =
      shell("readlink /proc/self/fd/" + std::to_string(b) + " /proc/self/fd/" + std::to_string(a));
  spec.fds = {{a, b}, {b, a}};
  std::string text = run(spec).text;
  ::close(a);
  ::close(b);
  EXPECT_EQ(text, "/etc/hostname\n/dev/null\n");
}

TEST(Spawn, KeepsTheEndOfALongErrorAndNeverBlocks) {
  Outcome o = run(shell("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo the end >&2"));
  EXPECT_EQ(o.status.code, 0);
  EXPECT_EQ(o.text.size(), size_t{64} << 10);
  EXPECT_TRUE(o.text.ends_with("xxxthe end\n"));
}

pid_t parent_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  pid_t parent = -1;
  stat >> number >> name >> state >> parent;
  return parent;
}

TEST(Spawn, ErrorTextWaitsForASlowSupervisor) {
  int go[2], printed[2];
  ASSERT_EQ(::pipe(go), 0);
  ASSERT_EQ(::pipe(printed), 0);
  SpawnSpec spec = shell("read -u 3; echo words >&2; echo >&4; exec sleep 100");
  spec.fds = {{go[0], 3}, {printed[1], 4}};
  auto child = spawn(spec);
  ASSERT_TRUE(child);
  const pid_t supervisor = parent_of(child->pid());
  ASSERT_GT(supervisor, 1);
  ASSERT_EQ(::kill(supervisor, SIGSTOP), 0);
  char byte = '\n';
  ASSERT_EQ(::write(go[1], &byte, 1), 1);
  ASSERT_EQ(::read(printed[0], &byte, 1), 1);
  std::jthread wake([&] {
    std::this_thread::sleep_for(milliseconds(50));
    ::kill(supervisor, SIGCONT);
  });
  EXPECT_EQ(child->error_text(), "words\n");
  for (int fd : {go[0], go[1], printed[0], printed[1]}) ::close(fd);
}

TEST(Spawn, ErrorTextIsSanitised) {
  EXPECT_EQ(run(shell("printf '\\033[31mred\\000' >&2")).text, "red");
}

TEST(Spawn, WhatCannotStartIsAnError) {
  auto missing = spawn({.argv = {"/no/such/program"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::world);
  EXPECT_NE(missing.error().message.find("/no/such/program"), std::string::npos);
  EXPECT_FALSE(spawn({.argv = {"no-such-program-on-path"}}));
  auto no_exec = spawn({.argv = {"/etc/hostname"}});
  ASSERT_FALSE(no_exec);
  EXPECT_NE(no_exec.error().message.find(": exec: "), std::string::npos);
  SpawnSpec lost = shell("true");
  lost.cwd = "/no/such/folder";
  auto no_folder = spawn(lost);
  ASSERT_FALSE(no_folder);
  EXPECT_NE(no_folder.error().message.find("/no/such/folder"), std::string::npos);
}

TEST(Spawn, WaitHonoursTheContext) {
  auto child = spawn(shell("sleep 100"));
  ASSERT_TRUE(child);
  auto late = child->wait(Context().with_timeout(milliseconds(20)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::timeout);
  EXPECT_TRUE(child->running());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(child->wait(Context(stop.get_token())).error().kind, ErrorKind::cancelled);
}

TEST(Spawn, KillEndsTheWholeFamily) {
  for (Isolation isolation : {Isolation{}, kAll}) {
    auto child = spawn(shell("sleep 100 & sleep 100", isolation));
    ASSERT_TRUE(child);
    pid_t pid = child->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
    child->kill();
    EXPECT_FALSE(child->running());
    EXPECT_TRUE(gone(pid));
    EXPECT_EQ(child->wait(kSoon)->signal, SIGKILL);
  }
}

TEST(Spawn, MovingOverAChildKillsTheOldOne) {
  auto child = spawn(shell("sleep 100"));
  pid_t pid = child->pid();
  *child = Child();
  EXPECT_TRUE(gone(pid));
}

TEST(Spawn, ChildrenDieWithTheirParent) {
  for (Isolation isolation : {Isolation{}, kAll}) {
    int fds[2];
    ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    pid_t parent = ::fork();
    if (parent == 0) {
      auto child = spawn(shell("sleep 100", isolation));
      pid_t pid = child ? child->pid() : -1;
      (void)!::write(fds[1], &pid, sizeof pid);
      ::kill(::getpid(), SIGKILL);
    }
    pid_t pid = -1;
    ASSERT_EQ(::read(fds[0], &pid, sizeof pid), ssize_t(sizeof pid));
    ::waitpid(parent, nullptr, 0);
    ::close(fds[0]);
    ::close(fds[1]);
    ASSERT_GT(pid, 0);
    EXPECT_TRUE(gone(pid));
  }
}

TEST(Spawn, ChildrenSurviveTheThreadThatStartedThem) {
  Result<Child> child = world_error("not started");
  std::thread([&] { child = spawn(shell("sleep 100")); }).join();
  std::this_thread::sleep_for(milliseconds(50));
  ASSERT_TRUE(child);
  EXPECT_TRUE(child->running());
}

TEST(Spawn, PeersSeeTheEndOfAChild) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  SpawnSpec spec = shell("exit 0", kAll);
  spec.fds = {{fds[1], 3}};
  auto child = spawn(spec);
  ::close(fds[1]);
  char byte;
  EXPECT_EQ(::read(fds[0], &byte, 1), 0);
  ::close(fds[0]);
}

TEST(Limits, MemoryCpuFilesAndDescriptors) {
  SpawnSpec memory = shell("head -c 300000000 /dev/zero | tail -c 300000000 | wc -c");
  memory.limits.memory_bytes = int64_t{100} << 20;
  EXPECT_NE(run(memory).text.find("memory exhausted"), std::string::npos);
  SpawnSpec cpu = shell("trap '' XCPU; while :; do :; done", kAll);
  cpu.limits.cpu_seconds = 1;
  EXPECT_EQ(run(cpu).status.signal, SIGKILL);
  SpawnSpec file = shell("head -c 100000 /dev/zero > /tmp/big", kAll);
  file.limits.file_bytes = 4096;
  EXPECT_NE(run(file).status.code, 0);
  SpawnSpec open = shell("ulimit -n");
  open.limits.open_files = 17;
  EXPECT_EQ(run(open).text, "17\n");
}

TEST(Limits, ForkBombsAreStopped) {
  SpawnSpec bomb = shell("for i in {1..400}; do sleep 100 & done", kAll);
  bomb.limits.processes = 64;
  auto child = spawn(bomb);
  ASSERT_TRUE(child);
  if (!child->grade().held.at("rlimits")) GTEST_SKIP() << child->grade().missing;
  std::string text;
  for (int i = 0; i < 400 && text.find("fork") == std::string::npos; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    text = child->error_text();
  }
  child->kill();
  EXPECT_NE(text.find("fork"), std::string::npos) << text;
}

class Isolated : public testing::Test {
 protected:
  void SetUp() override {
    if (probe().label != Protection::full) GTEST_SKIP() << "this machine: " << probe().missing;
  }
};

TEST_F(Isolated, GradeSaysWhatHeld) {
  SpawnSpec spec = shell("true", kAll);
  spec.required = true;
  spec.limits.cpu_seconds = 5;
  Outcome o = run(spec);
  EXPECT_EQ(o.grade.label, Protection::full) << o.grade.missing;
  for (const char* what : {"namespaces", "network", "seccomp", "rlimits"})
    EXPECT_TRUE(o.grade.held[what]) << what;
  EXPECT_EQ(run(shell("true")).grade.label, Protection::none);
}

TEST_F(Isolated, FilesAreReadOnlyAndTmpIsPrivate) {
  auto outside = std::filesystem::temp_directory_path() / "cutegen_sandbox_test";
  ASSERT_TRUE(write_file(outside, "secret"));
  Outcome o = run(shell(
      "touch /etc/x /usr/x /var/x; cat " + outside.string() +
          "; echo mine > /tmp/y && cat /tmp/y; cat /etc/hostname > /dev/null && echo readable",
      kAll));
  std::filesystem::remove(outside);
  EXPECT_NE(o.text.find("/etc/x': Read-only file system"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("/var/x': Read-only file system"), std::string::npos);
  EXPECT_EQ(o.text.find("secret"), std::string::npos);
  EXPECT_NE(o.text.find("mine\nreadable"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists("/tmp/y"));
}

TEST_F(Isolated, ReadableStaysVisibleReadOnly) {
  std::filesystem::path dir = "/tmp/cutegen_sandbox_test_dir/deep";
  std::filesystem::create_directories(dir);
  ASSERT_TRUE(write_file(dir / "f", "seen\n"));
  SpawnSpec spec = shell("cat deep/f; touch deep/g; cat /tmp/cutegen_sandbox_file", kAll);
  ASSERT_TRUE(write_file("/tmp/cutegen_sandbox_file", "one file\n"));
  spec.cwd = dir.parent_path();
  spec.readable = {"/tmp/cutegen_sandbox_file", "/tmp/cutegen_no_such_file"};
  Outcome o = run(spec);
  std::filesystem::remove_all(dir.parent_path());
  std::filesystem::remove("/tmp/cutegen_sandbox_file");
  EXPECT_NE(o.text.find("seen\n"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("Read-only file system"), std::string::npos);
  EXPECT_NE(o.text.find("one file\n"), std::string::npos);
  EXPECT_EQ(o.grade.label, Protection::full) << o.grade.missing;
}

TEST_F(Isolated, NoNetworkNoOtherProcessesNoNamespaces) {
  Outcome o =
      run(shell("echo > /dev/tcp/127.0.0.1/1; ls -d /proc/[0-9]* | wc -l; unshare -U true; "
                "mount -t tmpfs x /mnt; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' "
                "/proc/self/status; hostname",
                kAll));
  EXPECT_NE(o.text.find("socket: Operation not permitted"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("unshare: unshare failed: Operation not permitted"), std::string::npos);
  EXPECT_NE(o.text.find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_NE(o.text.find("CapBnd:\t0000000000000000"), std::string::npos);
  EXPECT_NE(o.text.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(o.text.find("Seccomp:\t2"), std::string::npos);
  EXPECT_NE(o.text.find("sandbox\n"), std::string::npos);
}

TEST_F(Isolated, TheSupervisorsMemoryCannotBeRead) {
  Outcome o =
      run(shell("head -c 1 /proc/1/environ; head -c1 /proc/1/mem; kill -9 1; echo alive", kAll));
  EXPECT_NE(o.text.find("/proc/1/environ' for reading: Permission denied"), std::string::npos)
      << o.text;
  EXPECT_NE(o.text.find("/proc/1/mem' for reading: Permission denied"), std::string::npos)
      << o.text;
  EXPECT_NE(o.text.find("alive"), std::string::npos);
}

TEST_F(Isolated, NoOpeningForWriting) {
  Isolation strict = kAll;
  strict.deny_open = true;
  Outcome o =
      run(shell("echo x > /tmp/y; mkdir /tmp/z; cat /etc/hostname && echo readable", strict));
  EXPECT_NE(o.text.find("/tmp/y: Operation not permitted"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("cannot create directory"), std::string::npos);
  EXPECT_NE(o.text.find("readable"), std::string::npos);
}

// Runs `body` in a forked child after harden_self; returns its wait status.
template <class F>
int hardened(const Limits& limits, const Isolation& isolation, F body) {
  pid_t pid = ::fork();
  if (pid == 0) {
    Grade g = harden_self(limits, isolation);
    ::_exit(g.label == Protection::full ? body() : 99);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST(Harden, DeniesSocketsExecForkAndWrites) {
  Isolation all{.no_network = true, .seccomp = true, .deny_fork = true, .deny_open = true};
  int status = hardened({}, all, [] {
    if (::socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM) return 1;
    if (::fork() >= 0 || errno != EPERM) return 2;
    char* const argv[] = {const_cast<char*>("true"), nullptr};
    if (::execv("/bin/true", argv) == 0 || errno != EPERM) return 3;
    if (::open("/tmp/cutegen_never", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EPERM) return 4;
    if (::open("/etc/hostname", O_RDWR) >= 0) return 5;
    int fd = ::open("/etc/hostname", O_RDONLY);
    return fd >= 0 ? 0 : 6;
  });
  EXPECT_EQ(status, 0);
}

TEST(Harden, LimitsMemory) {
  int status = hardened({.memory_bytes = int64_t{256} << 20}, {}, [] {
    void* big = ::malloc(size_t{1} << 30);
    bool refused = big == nullptr;
    ::free(big);
    return refused ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(Environment, HasNoSecrets) {
  ::setenv("CUDA_API_KEY", "s3cret", 1);
  ::setenv("LD_PRELOAD_TEST", "x", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  std::string all;
  for (const std::string& e : scrubbed_environment()) all += e + "\n";
  EXPECT_EQ(all.find("s3cret"), std::string::npos);
  EXPECT_EQ(all.find("LD_"), std::string::npos);
  EXPECT_NE(all.find("CUDA_VISIBLE_DEVICES=0\n"), std::string::npos);
  EXPECT_NE(all.find("PATH="), std::string::npos);
}

}  // namespace
}  // namespace cutegen::sandbox
