// SPDX-License-Identifier: Apache-2.0
// For tests: runs a Python script that imports the torch worker's modules and prints lines "CHECK:
// result".
//
// Contract: the constructor runs the script. The function said() returns the result that the script
// printed for a check. If the script printed no line for the check, said() returns the whole
// output.
//
// Example: static const TestScript script(kText); EXPECT_EQ(script.said("sums"), "ok");
#pragma once

#include <fmt/format.h>

#include <array>

#include "torch/testing/test_worker.h"

namespace cutegen::torch {

class TestScript {
 public:
  explicit TestScript(const char* text) {
    TaskFile file("script", text);
    const std::string root = CUTEGEN_SOURCE_DIR;
    std::string command = fmt::format("PYTHONPATH={}/python {}/.venv/bin/python -B {} 2>&1", root,
                                      root, file.path().string());
    FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) {
      all_ = "no shell";
      return;
    }
    std::array<char, 256> part{};
    while (std::fgets(part.data(), part.size(), pipe)) all_ += part.data();
    ::pclose(pipe);
  }

  std::string said(const std::string& check) const {
    const size_t at = all_.find("\n" + check + ": ");
    if (at == std::string::npos) return all_;
    const size_t begin = at + check.size() + 3;
    return all_.substr(begin, all_.find('\n', begin) - begin);
  }

 private:
  std::string all_ = "\n";
};

}  // namespace cutegen::torch
