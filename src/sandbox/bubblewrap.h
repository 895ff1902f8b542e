// SPDX-License-Identifier: Apache-2.0
// Bubblewrap: the program bwrap creates the namespaces instead of cutegen itself.
//
// Some kernels refuse user namespaces to ordinary programs but allow them to bwrap (an AppArmor
// profile, or a set-user-id bwrap).
// Contract: bubblewrap() returns the path of a bwrap that works on this machine, or an empty path;
// each process tests it once. apply_bubblewrap() turns a plan that starts a program into one that
// starts bwrap, which starts the program. The program then sees the same view as in cutegen's own
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

// Owns what the changed plan points to.
struct BubblewrapStorage {
  std::vector<std::string> arguments;
  UniqueFd filter;
};
Result<void> apply_bubblewrap(Plan& plan, const Isolation& isolation, BubblewrapStorage& storage);
// Undoes bwrap's encoding: it exits with 128 + N if signal N killed the program.
ExitStatus unwrapped(ExitStatus status);

}  // namespace cutegen::sandbox
