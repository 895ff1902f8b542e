// SPDX-License-Identifier: Apache-2.0
// The torch worker on a GPU or, without one, its messages and how it restricts itself.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <gmock/gmock.h>

#include <array>

#include "base/text.h"
#include "sandbox/filter.h"
#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

// The output of `script` in the tests' interpreter, run in the project's python/.
std::string python(const std::string& script) {
  const std::string root = CUTEGEN_SOURCE_DIR;
  std::string command =
      fmt::format("cd {}/python && {}/.venv/bin/python -c '{}' 2>&1", root, root, script);
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return "no shell";
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe)) out += part.data();
  ::pclose(pipe);
  return out;
}

std::string filter_in_hex() {
  auto filter = sandbox::filter_bytes({.no_network = true, .seccomp = true});
  EXPECT_TRUE(filter);
  std::string out;
  for (unsigned char c : *filter) out += fmt::format("{:02x}", c);
  return out;
}

TEST(GpuWorker, LocksEveryThreadOfItself) {
  std::string said = python(fmt::format(R"(
import socket, threading
from cutegen_worker import gpu
go = threading.Event()
def other():
    go.wait()
    try:
        socket.socket()
        print("other: open")
    except PermissionError:
        print("other: shut")
thread = threading.Thread(target=other)
thread.start()
socket.socket().close()
print("lock:" + gpu.lock(bytes.fromhex("{}")) + ".")
go.set()
thread.join()
try:
    socket.socket()
except PermissionError:
    print("main: shut")
)",
                                        filter_in_hex()));
  EXPECT_EQ(said, "lock:.\nother: shut\nmain: shut\n");
}

TEST(GpuWorker, SaysWhyAFilterIsNotTaken) {
  std::string said = python("from cutegen_worker import gpu; print(gpu.lock(bytes(16)))");
  EXPECT_EQ(said, "Invalid argument\n");
}

// A worker that ends while it holds the lock must release it, although this process still has the
// file open.
TEST(GpuWorker, LeavesTheSlotWhenItGoes) {
  std::string name = "/tmp/cutegen_slot_XXXXXX";
  UniqueFd ours(::mkstemp(name.data()));
  UniqueFd others(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink(name.c_str());
  TorchWorkerOptions options = test_options();
  options.slot = ours.get();
  auto worker = TorchWorker::open(options);
  ASSERT_TRUE(worker) << worker.error().text();
  // Takes the lock in place of the worker: both use the same open file.
  ASSERT_EQ(::flock(ours.get(), LOCK_EX | LOCK_NB), 0);
  ASSERT_NE(::flock(others.get(), LOCK_EX | LOCK_NB), 0);
  worker->reset();
  EXPECT_EQ(::flock(others.get(), LOCK_EX | LOCK_NB), 0);
}

TEST(GpuWorker, ATorchWithoutCudaIsSaidSo) {
  TorchWorkerOptions options = test_options();
  options.device = "cuda:0";
  auto worker = TorchWorker::open(options);
  if (worker) GTEST_SKIP() << "torch has a GPU here";
  EXPECT_EQ(worker.error().kind, ErrorKind::world);
  EXPECT_THAT(worker.error().text(),
              testing::AnyOf(testing::HasSubstr("is built without CUDA"),
                             testing::HasSubstr("torch cannot start cuda:0")));
  EXPECT_FALSE(worker.error().remedy.empty());
}

TEST(GpuWorker, StartsCudaAndMakesTheSameKindOfSets) {
  TorchWorkerOptions options = test_options();
  options.device = "cuda:0";
  auto worker = TorchWorker::open(options);
  if (!worker) GTEST_SKIP() << worker.error().text();
  EXPECT_TRUE((*worker)->grade().held.at("seccomp")) << (*worker)->grade().missing;
  auto task = (*worker)->describe(Context(), shipped("relu.py"), {});
  ASSERT_TRUE(task) << task.error().text();
  auto set = (*worker)->make_set(Context(), *task, task->shapes.front(), "signed", 7);
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_FALSE(set->slots.empty());
}

}  // namespace
}  // namespace cutegen::torch
