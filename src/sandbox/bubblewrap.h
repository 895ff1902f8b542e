// SPDX-License-Identifier: Apache-2.0
// Lets the program bwrap (bubblewrap) create the namespaces instead of cutegen.
//
// Some kernels refuse user namespaces to ordinary programs but allow them to bwrap (an AppArmor
// profile, or a set-user-id bwrap).
// Contract: bubblewrap() returns the path of a bwrap that works on this machine, or an empty path;
// each process tests it once. apply_bubblewrap() changes a plan that starts a program: it then
// starts bwrap, which starts the program. The program sees the same view as in cutegen's own
// namespaces.
//
// Example: if (!bubblewrap().empty()) apply_bubblewrap(plan, isolation, storage);
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "sandbox/launch.h"

namespace cutegen::sandbox {

const std::string& bubblewrap();

// Owns the memory to which the changed plan points.
struct BubblewrapStorage {
  std::vector<std::string> arguments;
  UniqueFd filter;
};
Result<void> apply_bubblewrap(Plan& plan, const Isolation& isolation, BubblewrapStorage& storage);
// Undoes bwrap's encoding: it exits with 128 + N if signal N killed the program.
ExitStatus unwrapped(ExitStatus status);

}  // namespace cutegen::sandbox
