// SPDX-License-Identifier: Apache-2.0
// For tests: runs a function in a child process with a chosen CUDA driver, because a process cannot
// replace a loaded driver.
//
// Contract: `how` is "real" (the machine's driver), "none", or a behaviour of tests/fake_cuda:
// "good" or the name of a failure. If the function `body` fails an expectation, the test fails.
//
// Example: with_driver("good", [] { ASSERT_TRUE(open_device("cuda:0")); });
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

namespace cutegen::device::cuda {

// Returns the path of a fake driver with the behaviour `how`.
inline std::string fake_driver(const std::string& how) {
  namespace fs = std::filesystem;
  fs::path real = fs::path(CUTEGEN_BIN_DIR).parent_path() / "tests/libfake_cuda.so";
  fs::path copy = real.parent_path() / "fake_cuda" / (how + ".so");
  std::error_code error;
  fs::create_directories(copy.parent_path(), error);
  fs::create_symlink(real, copy, error);  // another test may have created the link already
  return copy.string();
}

inline constexpr const char *kNoDriver = "none", *kRealDriver = "real";

inline void with_driver(const std::string& how, const std::function<void()>& body) {
  pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    const std::string path = how == kNoDriver ? "/no/such/libcuda.so.1" : fake_driver(how);
    if (how != kRealDriver) ::setenv("CUTEGEN_CUDA_DRIVER", path.c_str(), 1);
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << how << ": see the failure above";
}

}  // namespace cutegen::device::cuda
