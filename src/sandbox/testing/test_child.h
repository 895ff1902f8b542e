// SPDX-License-Identifier: Apache-2.0
// For tests: run() runs a child process to its end, and gone() waits until a process has ended.
//
// Example: EXPECT_EQ(run(spec).status.text(), "exit code 0");
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>

#include "sandbox/sandbox.h"

namespace cutegen::sandbox {

inline const Isolation kAll{.namespaces = true, .no_network = true, .seccomp = true};

struct Outcome {
  ExitStatus status;
  std::string text;
  Grade grade;
};

inline Outcome run(const SpawnSpec& spec) {
  auto child = spawn(spec);
  EXPECT_TRUE(child) << child.error().text();
  if (!child) return {};
  auto status = child->wait(Context().with_timeout(std::chrono::seconds(120)));
  EXPECT_TRUE(status) << status.error().text();
  return {.status = status ? *status : ExitStatus{},
          .text = child->error_text(),
          .grade = child->grade()};
}

inline bool gone(pid_t pid) {
  for (int i = 0; i < 300; ++i) {
    if (::kill(pid, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace cutegen::sandbox
