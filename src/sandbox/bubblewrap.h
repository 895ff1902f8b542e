// SPDX-License-Identifier: Apache-2.0
// Bubblewrap: the namespaces made by the program bwrap instead of by ourselves.
//
// It matters where the kernel refuses user namespaces to ordinary programs but lets bwrap have them
// (an AppArmor profile, or a set-user-id bwrap).
// Contract: bubblewrap() is the path of a bwrap that was seen to work here, or empty; it is tried
// once a process. apply_bubblewrap() turns a plan that starts a program into one that starts bwrap,
// which starts the program in the same view that the own namespaces give.
//
// Example: if (!bubblewrap().empty()) apply_bubblewrap(plan, isolation, storage);
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "sandbox/launch.h"

namespace cutegen::sandbox {

[[nodiscard]] const std::string& bubblewrap();

// What the changed plan points into.
struct BubblewrapStorage {
  std::vector<std::string> arguments;
  UniqueFd filter;
};
[[nodiscard]] Result<void> apply_bubblewrap(Plan& plan, const Isolation& isolation,
                                            BubblewrapStorage& storage);
// bwrap ends with 128 + N when the program was killed by signal N: that status again.
[[nodiscard]] ExitStatus unwrapped(ExitStatus status);

}  // namespace cutegen::sandbox
