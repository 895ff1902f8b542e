// SPDX-License-Identifier: Apache-2.0
// For tests: a simulator with typed buffers, and one function that runs a kernel.
//
// Example: Sim sim; auto x = sim.input("x", v); auto r = sim.run(module, "relu", 4, 256, {x, 7});
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "base/file.h"
#include "ptx/machine/machine.h"

namespace cutegen::ptx {

inline Module golden(const std::string& name) {
  auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/" + name);
  EXPECT_TRUE(text.has_value());
  auto module = Module::parse(text.value_or(""));
  if (!module) ADD_FAILURE() << module.error().text();
  return std::move(*module);
}

using Bytes8 = std::vector<std::byte>;
template <class T>
Bytes8 arg(T value) {
  Bytes8 out(sizeof(T));
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

class Sim {
 public:
  template <class T>
  Bytes8 input(const char* name, std::vector<T>& v) {
    return arg(memory.add(name, std::as_writable_bytes(std::span(v)), Access::read_only));
  }
  template <class T>
  Bytes8 output(const char* name, std::vector<T>& v) {
    return arg(memory.add(name, std::as_writable_bytes(std::span(v)), Access::read_write));
  }
  Result<LaunchReport> launch(const Module& m, const char* entry, int64_t grid, int64_t block,
                              std::vector<Bytes8> args, int64_t shared = 0) {
    LaunchConfig config{.grid = {grid, 1, 1},
                        .block = {block, 1, 1},
                        .cluster = {1, 1, 1},
                        .shared_bytes = shared,
                        .cooperative = false};
    return ptx::launch(context, memory, m, entry, config, args, options);
  }
  // Runs a launch, expects that it ends with `status`, and returns its report.
  LaunchReport run(const Module& m, const char* entry, int64_t grid, int64_t block,
                   std::vector<Bytes8> args, int64_t shared = 0,
                   LaunchStatus status = LaunchStatus::ok) {
    auto r = launch(m, entry, grid, block, std::move(args), shared);
    if (!r) {
      ADD_FAILURE() << r.error().text();
      return {};
    }
    EXPECT_EQ(r->status, status) << r->reason;
    return *r;
  }

  Memory memory;
  Context context;
  RunOptions options;
};

}  // namespace cutegen::ptx
