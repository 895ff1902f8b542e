// SPDX-License-Identifier: Apache-2.0
// For tests: runs the function `body` in its own process, with a fake CUDA driver and a fake ncu.
//
// Contract: the argument `ncu` selects the behaviour of the fake ncu. The script
// tests/fake_ncu/fake_ncu.py lists the names of behaviours: "works", "refused", "hangs", and so on.
//
// Example: with_fakes("refused", [] { EXPECT_FALSE(counters().probe(Context())); });
#pragma once

#include <filesystem>

#include "device/testing/driver_process.h"

namespace cutegen::eval {

inline void with_fakes(const std::string& ncu, const std::function<void()>& body) {
  device::cuda::with_driver("good", [&] {
    namespace fs = std::filesystem;
    const fs::path link = fs::path(CUTEGEN_BIN_DIR).parent_path() / "tests/fake_ncu" / ncu;
    std::error_code error;
    fs::create_directories(link.parent_path(), error);
    fs::create_symlink(fs::path(CUTEGEN_SOURCE_DIR) / "tests/fake_ncu/fake_ncu.py", link, error);
    ::setenv("CUTEGEN_NCU", link.c_str(), 1);
    body();
  });
}

}  // namespace cutegen::eval
