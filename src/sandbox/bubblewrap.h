// SPDX-License-Identifier: Apache-2.0
// Lets the program bwrap (bubblewrap) create the namespaces of a sandbox instead of cutegen.
//
// Some Linux systems deny user namespaces to ordinary programs but allow them to bwrap, through an
// AppArmor profile or because bwrap is set-user-id.
//
// Contract: bubblewrap() tests once per process whether bwrap works on this machine, and returns
// bwrap's path, or an empty text if bwrap does not work. The function apply_bubblewrap() changes a
// Plan so that the Plan starts bwrap, which then starts the program. In namespaces that bwrap
// creates, a program sees the same files and processes as in namespaces that cutegen creates.
//
// Example: if (!bubblewrap().empty()) apply_bubblewrap(plan, isolation, storage);
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "sandbox/launch.h"

namespace cutegen::sandbox {

const std::string& bubblewrap();

// Owns the strings and the descriptor that a Plan refers to after apply_bubblewrap().
struct BubblewrapStorage {
  std::vector<std::string> arguments;
  UniqueFd filter;
};
Result<void> apply_bubblewrap(Plan& plan, const Isolation& isolation, BubblewrapStorage& storage);
// Converts bwrap's exit code 128 + N back to "killed by signal N".
ExitStatus unwrapped(ExitStatus status);

}  // namespace cutegen::sandbox
